import { type BuiltSql, bind, createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import type { TableName } from '#databases/request/request.ts'

/**
 * Functions and policies that name one of the tables, as one JSON value `{ isNamed, isInCode, deletes }`. The text of a body is looked through, because
 * the server binds only bodies of the SQL standard to tables. Runs with the search path pg_catalog, and waits for no lock.
 */
export function tableUseSql(tables: readonly TableName[]): BuiltSql {
  const sql = createSql('')
  const asked = tables.map(({ schema, table }) => ({ schema, name: table, word: wordPattern(table) }))
  sql.text = `
with asked as (
  select * from json_to_recordset(${bind(sql, JSON.stringify(asked))}::json) as a(schema text, name text, word text)
), relation as (
  select c.oid, c.reltype from asked join pg_namespace n on n.nspname = asked.schema
  join pg_class c on c.relnamespace = n.oid and c.relname = asked.name
), bound as (
  select d.classid, d.objid from pg_depend d join relation r on d.refclassid = 'pg_class'::regclass and d.refobjid = r.oid
    or d.refclassid = 'pg_type'::regclass and d.refobjid in (select t.oid from pg_type t where t.oid = r.reltype or t.typelem = r.reltype)
), naming as (
  select p.prosrc from pg_proc p join pg_language l on l.oid = p.prolang
  where p.oid >= ${FIRST} and l.lanname not in ('c', 'internal') and (
    exists (select from asked where p.prosrc ~* asked.word)
    or exists (select from bound where classid = 'pg_proc'::regclass and objid = p.oid))
)
select json_build_object(
  'isNamed', exists (select from naming) or exists (select from bound where classid = 'pg_policy'::regclass),
  'isInCode', exists (select from naming),
  'deletes', exists (select from naming where prosrc ~* '\\y(delete|truncate)\\y')) as use`
  return sql
}

/** The first number of an object that is not of the system. */
const FIRST = 16_384

/** The name as a word of an SQL text, in quotes or without. */
const wordPattern = (name: string): string => {
  const written = name.replaceAll('"', '""').replace(/[^\p{L}\p{N}_]/gu, '\\$&')
  return `(^|[^[:alnum:]_$])${written}($|[^[:alnum:]_$])`
}
