import { columnText, type SqlBuilder, tableText } from '#databases/drivers/postgres/sql/sql-builder.ts'
import type { Output, Relation } from '#databases/plan/plan.ts'

type RelationOutput = Extract<Output, { kind: 'relation' }>

/**
 * Bounds nested lists, whose sizes multiply: 5,000 books of an author, each with all books of its author, are 25 million rows of JSON
 * before one can be counted. So the database first counts the pairs up to the limit; above it the value is that many empty lines (rows.ts),
 * and the reader refuses them as too many rows.
 */
export function boundedWork(sql: SqlBuilder, outer: string, item: RelationOutput, text: string): string {
  const max = sql.relationRows
  const paths = Number.isFinite(max) ? pathsOf(item).filter(multiplies) : []
  if (paths.length === 0) return text
  const counted = paths.map((path) => `(${pathText(sql, outer, path)} limit ${max})`).join(' union all ')
  const isMore = `(select pg_catalog.count(*) from (${counted}) as w) operator(pg_catalog.>=) ${max}`
  const tooMany = `pg_catalog.concat('[', pg_catalog.repeat(e'\\n', ${max}), ']')::pg_catalog.json`
  return `case when ${isMore} then ${tooMany} else ${text} end`
}

type Path = readonly Relation[]

/** The paths from this relation to each nested one. */
function pathsOf({ relation, columns }: RelationOutput): Path[] {
  const inner = columns.flatMap((column) => (column.kind === 'relation' ? pathsOf(column) : []))
  return [[relation], ...inner.map((path) => [relation, ...path])]
}

const multiplies = (path: Path): boolean =>
  path.at(-1)?.many === true && path.filter(({ many }) => many).length > 1

function pathText(sql: SqlBuilder, outer: string, path: Path): string {
  let last = outer
  const conditions: string[] = []
  const tables = path.map(({ table, on }) => {
    const alias = `t${++sql.aliases}`
    conditions.push(...on.map((pair) => `${columnText(alias, pair.inner)} = ${columnText(last, pair.outer)}`))
    last = alias
    return `${tableText(table)} as ${alias}`
  })
  return `select 1 from ${tables.join(', ')} where ${conditions.join(' and ')}`
}
