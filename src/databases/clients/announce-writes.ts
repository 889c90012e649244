import { isStructural } from '#databases/drivers/catalogue-cache.ts'
import type { Driver, OpenTransaction, SqlRequest } from '#databases/drivers/driver.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import type { WritePlan } from '#databases/plan/plan.ts'

/**
 * Tags of cached answers. A write announces the tags that it invalidates to all processes. Tags name the database by the server's identity,
 * not by the client, because several clients may have the same database. A table that stands alone (`Table.standsAlone`) has its own tag;
 * `dependent` marks answers from all other tables, `all` every answer from the database. A database without an identity could be any database:
 * every write invalidates its answers, and a write to it invalidates every answer.
 */
const standalone = (database: string, { schema, name }: Table): string => `rows:${database}:${schema}.${name}`
const dependent = (database: string): string => `rows:${database}:dependent`
const all = (database: string): string => `rows:${database}:all`
const UNNAMED = 'rows:unnamed'
const EVERY = 'rows:every'

/** The identity of a database, undefined where its server does not report one (`Driver.identity`). */
type Name = string | undefined

/** Tags of an answer from these tables. With policies, it may depend on other tables too. */
export function tagsOfAnswer(
  database: Name,
  tables: readonly Table[],
  hasPolicies: boolean,
): readonly string[] {
  if (database === undefined) return [EVERY, UNNAMED]
  const tags = tables.map((table) =>
    table.standsAlone === true && !hasPolicies ? standalone(database, table) : dependent(database),
  )
  return [...new Set([EVERY, all(database), ...tags])]
}

export const tagsOfWrite = (database: Name, table: Table): readonly string[] =>
  database !== undefined && table.standsAlone === true
    ? [standalone(database, table), dependent(database), UNNAMED]
    : tagsOfChange(database)

const tagsOfChange = (database: Name): readonly string[] =>
  database === undefined ? [EVERY] : [all(database), UNNAMED]

/** Tags of a restore, which replaces rows and structure. */
export const tagsOfRestore = (database: Name): readonly string[] => tagsOfChangedStructure(database)

const STRUCTURE = 'structure:'

/** The tag of a change of the structure, after which all processes read it again. */
const tagsOfStructure = (database: Name): readonly string[] => [`${STRUCTURE}${database ?? ''}`]

/** Cached answers go too: after a change of the structure, writes may invalidate other answers than before. */
const tagsOfChangedStructure = (database: Name): readonly string[] => [
  ...tagsOfChange(database),
  ...tagsOfStructure(database),
]

/** The database of a structure tag, the empty text for an unknown one; undefined for other tags. */
export const structureIn = (tag: string): string | undefined =>
  tag.startsWith(STRUCTURE) ? tag.slice(STRUCTURE.length) : undefined

export type Announce = (tags: readonly string[]) => Promise<void>

/** SQL that may change the structure. Plans by the former one would write values for columns of other types. */
const changes = ({ readOnly, text }: SqlRequest): boolean => !readOnly && isStructural(text)

/**
 * The same driver, but a change by management or SQL returns only when all processes know the new structure, and, with cached answers, an
 * operation that may have changed rows when no process serves an older answer.
 */
export function announceWrites(driver: Driver, announce: Announce, cachesAnswers: boolean): Driver {
  let known: Name
  const identity = async (): Promise<Name> => {
    known = await driver.identity()
    return known
  }
  /** Announces also after a failure: a lost connection may have committed. */
  const after = async <T>(
    work: () => Promise<T>,
    tagsOf: (database: Name) => readonly string[],
  ): Promise<T> => {
    // Before the work: a write that cannot be announced must not happen.
    const tags = tagsOf(await identity())
    try {
      return await work()
    } finally {
      await announce(tags)
    }
  }
  /** Inside a transaction nothing is announced: it commits at its end. */
  const write = <T>(plan: WritePlan, on: OpenTransaction | undefined, work: () => Promise<T>): Promise<T> =>
    on === undefined ? after(work, (database) => tagsOfWrite(database, plan.table)) : work()
  const structure = cachesAnswers ? tagsOfChangedStructure : tagsOfStructure
  const { transaction, sql, fixedSql, call, management, policies } = driver
  const structural: Driver = {
    ...driver,
    identity,
    structureChanged(database) {
      if (database === '' || known === undefined || known === database) driver.invalidate()
    },
    management: management && {
      ...management,
      run: (statements, conditions) => after(() => management.run(statements, conditions), structure),
    },
    sql: sql && ((request) => (changes(request) ? after(() => sql(request), structure) : sql(request))),
    fixedSql: fixedSql && {
      ...fixedSql,
      run: (request) =>
        changes(request) ? after(() => fixedSql.run(request), structure) : fixedSql.run(request),
    },
    policies: policies && { as: (persona) => announceWrites(policies.as(persona), announce, cachesAnswers) },
  }
  if (!cachesAnswers) return structural
  const ofSql = (request: SqlRequest) => (changes(request) ? structure : tagsOfChange)
  return {
    ...structural,
    insert: (plan, on, presence) => write(plan, on, () => driver.insert(plan, on, presence)),
    update: (plan, on, presence) => write(plan, on, () => driver.update(plan, on, presence)),
    delete: (plan, on, presence) => write(plan, on, () => driver.delete(plan, on, presence)),
    transaction:
      transaction &&
      ((work, options) =>
        options.readOnly === true
          ? transaction(work, options)
          : after(() => transaction(work, options), tagsOfChange)),
    sql:
      sql &&
      ((request) => {
        if (request.readOnly) return sql(request)
        return after(() => sql(request), ofSql(request))
      }),
    fixedSql: fixedSql && {
      ...fixedSql,
      run: (request) =>
        request.readOnly ? fixedSql.run(request) : after(() => fixedSql.run(request), ofSql(request)),
    },
    call:
      call && ((request) => (request.readOnly ? call(request) : after(() => call(request), tagsOfChange))),
  }
}
