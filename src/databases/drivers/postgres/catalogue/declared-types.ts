import { callable, FUNCTIONS_SQL, type FunctionRow } from '#databases/drivers/postgres/catalogue/functions.ts'
import { LIMITED_LOCKS } from '#databases/drivers/postgres/sql/limited-locks.ts'
import { qualifiedType } from '#databases/drivers/postgres/sql/system-names.ts'
import type {
  CompositeField,
  DeclaredFunction,
  DeclaredType,
  DeclaredTypes,
  TypeUse,
  UpdatableView,
} from '#databases/plan/declared-types.ts'

/** In the order of TypeUse. */
const use = (alias: string): string => `${qualifiedType(alias)}, ${alias}.typname`

const VISIBLE = `n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and has_schema_privilege(n.oid, 'usage')`

/** Bits of pg_relation_is_updatable for UPDATE and INSERT: 1 << CMD_UPDATE, 1 << CMD_INSERT. */
const WRITES = 4 + 8

/**
 * Types, functions and updatable views in one JSON value. Whether a view is updatable is read under a lock on it. Runs with the search path
 * pg_catalog.
 */
export const DECLARED_TYPES_SQL = `
select json_build_object(
  'types', (
    select coalesce(json_agg(json_build_array(
      ${qualifiedType('t')}, n.nspname, t.typname, case t.typtype when 'c' then c.relkind else t.typtype end, (
        select json_agg(e.enumlabel order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid
      ), (
        select json_agg(json_build_array(a.attname, ${use('f')}) order by a.attnum)
        from pg_attribute a join pg_type f on f.oid = a.atttypid
        where c.relkind = 'c' and a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      ), (
        select json_build_array(${use('o')}) from pg_type o where o.oid = case t.typtype when 'd' then t.typbasetype else t.typelem end
      )
    )), '[]')
    from pg_type t join pg_namespace n on n.oid = t.typnamespace left join pg_class c on c.oid = t.typrelid
    where ${VISIBLE} and (t.typtype in ('e', 'c', 'd') or (t.typtype = 'b' and t.typcategory = 'A'))
  ),
  'views', (
    select coalesce(json_agg(json_build_array(n.nspname, c.relname, (
      select json_agg(a.attname) from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and pg_column_is_updatable(c.oid, a.attnum, true)
    ))), '[]')
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where ${VISIBLE} and c.relkind = 'v' and pg_relation_is_updatable(c.oid, true) & ${WRITES} = ${WRITES}
  ),
  'functions', (${FUNCTIONS_SQL})
) as declared from ${LIMITED_LOCKS}`

type Used = readonly [cast: string, base: string]

/** The value of the statement. */
export type DeclaredRow = {
  readonly types: readonly (readonly [
    cast: string,
    schema: string,
    name: string,
    /** pg_type.typtype; of a composite type pg_class.relkind. */
    kind: string,
    labels: readonly string[] | null,
    fields: readonly (readonly [name: string, ...Used])[] | null,
    of: Used | null,
  ])[]
  readonly views: readonly (readonly [schema: string, name: string, columns: readonly string[] | null])[]
  readonly functions: readonly FunctionRow[]
}

export function buildDeclaredTypes({ types, views, functions }: DeclaredRow): DeclaredTypes {
  return {
    types: new Map(types.map((row) => [row[0], typeOf(row)])),
    updatableViews: views.map(
      ([schema, name, columns]): UpdatableView => ({ schema, name, columns: columns ?? [] }),
    ),
    functions: functions.flatMap(functionOf),
  }
}

function typeOf([, schema, name, kind, labels, fields, of]: DeclaredRow['types'][number]): DeclaredType {
  if (kind === 'e') return { schema, name, kind: 'enum', labels: labels ?? [] }
  if (kind === 'c') return { schema, name, kind: 'composite', fields: (fields ?? []).map(fieldOf) }
  if (of !== null) return { schema, name, kind: kind === 'd' ? 'domain' : 'array', of: used(of) }
  return { schema, name, kind: 'row' }
}

const fieldOf = ([name, ...type]: readonly [string, ...Used]): CompositeField => ({ name, ...used(type) })
const used = ([cast, base]: Used): TypeUse => ({ cast, base })

function functionOf(row: FunctionRow): readonly DeclaredFunction[] {
  const found = callable(row)
  const [cast, , base] = row.returns
  return found === undefined ? [] : [{ ...found, returns: { cast, base }, returnsSet: row.set }]
}
