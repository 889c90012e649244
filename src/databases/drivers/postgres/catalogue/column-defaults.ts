import type { Runner } from '#databases/drivers/postgres/runner.ts'
import { type Defaults, takesDefault } from '#databases/drivers/postgres/sql/insert.ts'
import { qualifyNames } from '#databases/drivers/postgres/sql/qualify-names.ts'
import { type BuiltSql, bind, createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import type { Plan } from '#databases/plan/plan.ts'

/**
 * Reads column defaults, which an insert has to spell when only some of its rows name a column. The database writes them for the search
 * path pg_catalog, so that names of the client's objects have their schema; all other names get pg_catalog.
 */
export function createDefaultsReader(run: Runner): (plan: Plan) => Promise<Defaults> {
  // The entry lives as long as the catalogue of the table.
  const known = new WeakMap<Table, Promise<Defaults>>()
  return async (plan) => {
    if (plan.kind !== 'insert' || !plan.columns.some((column) => takesDefault(plan, column))) return NONE
    const { table } = plan
    const found = known.get(table) ?? read(run, table)
    known.set(table, found)
    try {
      return await found
    } catch (error) {
      known.delete(table)
      throw error
    }
  }
}

const NONE: Defaults = new Map()

async function read(run: Runner, table: Table): Promise<Defaults> {
  const texts = (await run.systemValue(defaultsSql(table))) as Readonly<Record<string, string>> // as the statement builds it
  const written = await Promise.all(
    Object.entries(texts).map(async ([name, text]) => [name, await qualifyNames(text)] as const),
  )
  return new Map(written)
}

function defaultsSql({ schema, name }: Table): BuiltSql {
  const sql = createSql('')
  const [inSchema, called] = [bind(sql, schema), bind(sql, name)]
  sql.text = `
select coalesce(json_object_agg(a.attname, case when a.attidentity <> '' then
    (select 'nextval(' || quote_literal(s.objid::regclass::text) || '::regclass)' from pg_depend s
      where s.classid = 'pg_class'::regclass and s.refclassid = 'pg_class'::regclass
        and s.refobjid = a.attrelid and s.refobjsubid = a.attnum and s.deptype = 'i')
  else coalesce(pg_get_expr(d.adbin, 0), pg_get_expr(t.typdefaultbin, 0)) end), '{}') as defaults
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where n.nspname = ${inSchema} and c.relname = ${called}
  and (a.attidentity <> '' or d.adbin is not null or t.typdefaultbin is not null)`
  return sql
}
