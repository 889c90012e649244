import { type BuiltSql, bind, createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { qualifiedType } from '#databases/drivers/postgres/sql/system-names.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { Argument, CallableFunction } from '#databases/plan/functions.ts'
import type { TableName } from '#databases/request/request.ts'

/** Functions of one name, in one JSON value. Runs with the search path pg_catalog (`Runner.systemValue`). */
export function functionsSql({ schema, table: name }: TableName): BuiltSql {
  const sql = createSql(FUNCTIONS_SQL)
  sql.text += ` and n.nspname = ${bind(sql, schema)} and p.proname = ${bind(sql, name)}`
  return sql
}

const typeText = (alias: string): string =>
  `json_build_array(${qualifiedType(alias)}, ${alias}.typcategory, coalesce(${alias}b.typname, ${alias}.typname), ${alias}.typtype, format_type(${alias}.oid, null), coalesce(${alias}b.typdelim, ${alias}.typdelim))`

/**
 * All functions. Those of the system and of extensions are excluded: with `set_config`, `pg_terminate_backend`, `query_to_xml`, `crosstab` or
 * `dblink`, the right to call functions would include running SQL and changing the session.
 */
export const FUNCTIONS_SQL = `
select coalesce(json_agg(json_build_object(
  'schema', n.nspname, 'name', p.proname, 'defaults', p.pronargdefaults, 'set', p.proretset, 'returns', ${typeText('r')},
  'arguments', (
    select coalesce(json_agg(json_build_array(coalesce(a.name, ''), coalesce(a.mode, 'i'), ${typeText('t')}) order by a.place), '[]')
    from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargnames, p.proargmodes::text[]) with ordinality a(type, name, mode, place)
    join pg_type t on t.oid = a.type left join pg_type tb on tb.oid = t.typbasetype
  ),
  'attributes', (
    select coalesce(json_agg(json_build_array(a.attname, ${typeText('t')}) order by a.attnum), '[]')
    from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_type tb on tb.oid = t.typbasetype
    where a.attrelid = r.typrelid and r.typrelid <> 0 and a.attnum > 0 and not a.attisdropped
  )
) order by p.oid), '[]') as functions
from pg_proc p
join pg_namespace n on n.oid = p.pronamespace
join pg_type r on r.oid = p.prorettype left join pg_type rb on rb.oid = r.typbasetype
where p.prokind = 'f' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and has_schema_privilege(n.oid, 'usage')
  and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')`

/** `shown`: the common spelling, `integer` instead of `pg_catalog.int4`. */
type TypeFacts = readonly [
  cast: string,
  category: string,
  base: string,
  kind: string,
  shown: string,
  separator: string,
]

export type FunctionRow = {
  readonly schema: string
  readonly name: string
  readonly defaults: number
  readonly set: boolean
  readonly returns: TypeFacts
  readonly arguments: readonly (readonly [name: string, mode: string, type: TypeFacts])[]
  readonly attributes: readonly (readonly [name: string, type: TypeFacts])[]
}

/** Undefined for functions that cannot be called with named arguments: unnamed or polymorphic arguments, trigger functions. */
export function callable(row: FunctionRow): CallableFunction | undefined {
  const input = row.arguments.filter(([, mode]) => mode === 'i' || mode === 'b' || mode === 'v')
  if (input.some(([name, , [, , , kind]]) => name === '' || kind === 'p')) return undefined
  const result = resultOf(row)
  if (result === undefined) return undefined
  const required = input.length - row.defaults
  const parameters = input.map(
    ([name, mode, type], index): Argument => ({
      column: columnOf(name, type),
      optional: index >= required,
      variadic: mode === 'v',
    }),
  )
  return { schema: row.schema, name: row.name, arguments: parameters, ...result }
}

function resultOf(row: FunctionRow): Pick<CallableFunction, 'columns' | 'isValue'> | undefined {
  const [, , base, kind] = row.returns
  const output = row.arguments.filter(([, mode]) => mode === 'o' || mode === 'b' || mode === 't')
  if (base === 'void') return { columns: undefined, isValue: true }
  if (base === 'record' && output.length > 0)
    return { columns: output.map(([name, , type]) => columnOf(name, type)), isValue: false }
  if (kind === 'p') return undefined
  if (row.attributes.length > 0)
    return { columns: row.attributes.map(([name, type]) => columnOf(name, type)), isValue: false }
  return { columns: [columnOf(output[0]?.[0] || row.name, row.returns)], isValue: true }
}

const columnOf = (name: string, [cast, category, base, , shown, separator]: TypeFacts): Column => ({
  name,
  type: shown,
  cast,
  category,
  base,
  nullable: true,
  fallback: undefined,
  writable: false,
  identity: undefined,
  separator: separator === ',' ? undefined : separator,
})
