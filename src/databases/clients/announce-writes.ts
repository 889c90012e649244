import { isStructural } from '#databases/drivers/catalogue-cache.ts'
import type { Driver, OpenTransaction } from '#databases/drivers/driver.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import type { WritePlan } from '#databases/plan/plan.ts'

/**
 * Which cached answers a write ends, as tags that all processes are told of. They name the database as its server knows it, and not the
 * client: several clients may have the same one. A table that stands alone has a tag of its own; `any` is on answers from everything
 * else; `all` on every answer from the database. A database that cannot be named may be any: every write ends its answers, and a write
 * to it ends every answer.
 */
const own = (database: string, { schema, name }: Table): string => `rows:${database}:${schema}.${name}`
const any = (database: string): string => `rows:${database}:any`
const all = (database: string): string => `rows:${database}:all`
const UNNAMED = 'rows:unnamed'
const EVERY = 'rows:every'

/** The name of a database, undefined where its server does not tell (`Driver.identity`). */
type Name = string | undefined

/** An answer from these tables; with policies in between it may rest on others. */
export function tagsOfAnswer(
  database: Name,
  tables: readonly Table[],
  hasPolicies: boolean,
): readonly string[] {
  if (database === undefined) return [EVERY, UNNAMED]
  const tags = tables.map((table) =>
    table.standsAlone === true && !hasPolicies ? own(database, table) : any(database),
  )
  return [...new Set([EVERY, all(database), ...tags])]
}

export const tagsOfWrite = (database: Name, table: Table): readonly string[] =>
  database !== undefined && table.standsAlone === true
    ? [own(database, table), any(database), UNNAMED]
    : tagsOfChange(database)

const tagsOfChange = (database: Name): readonly string[] =>
  database === undefined ? [EVERY] : [all(database), UNNAMED]

const STRUCTURE = 'structure:'

/** After it tables of the database may look otherwise, and writes to them end other answers than before. */
const tagsOfStructure = (database: Name): readonly string[] => [
  ...tagsOfChange(database),
  `${STRUCTURE}${database ?? ''}`,
]

/** The database of which a tag says so, the empty text for any; undefined where it says something else. */
export const structureIn = (tag: string): string | undefined =>
  tag.startsWith(STRUCTURE) ? tag.slice(STRUCTURE.length) : undefined

export type Announce = (tags: readonly string[]) => Promise<void>

/** The same driver; but whatever may have changed rows answers when no process gives an older answer any more. */
export function announceWrites(driver: Driver, announce: Announce): Driver {
  let known: Name
  const identity = async (): Promise<Name> => {
    known = await driver.identity()
    return known
  }
  /** Also after a failure: a connection that broke off may have committed. */
  const after = async <T>(
    work: () => Promise<T>,
    tagsOf: (database: Name) => readonly string[],
  ): Promise<T> => {
    // Before the work: what cannot be announced is not done.
    const tags = tagsOf(await identity())
    try {
      return await work()
    } finally {
      await announce(tags)
    }
  }
  /** In a transaction nothing is committed before its end. */
  const write = <T>(plan: WritePlan, on: OpenTransaction | undefined, work: () => Promise<T>): Promise<T> =>
    on === undefined ? after(work, (database) => tagsOfWrite(database, plan.table)) : work()
  const { as } = driver
  return {
    ...driver,
    identity,
    structureChanged(database) {
      if (database === '' || known === undefined || known === database) driver.invalidate()
    },
    insert: (plan, on, presence) => write(plan, on, () => driver.insert(plan, on, presence)),
    update: (plan, on, presence) => write(plan, on, () => driver.update(plan, on, presence)),
    delete: (plan, on, presence) => write(plan, on, () => driver.delete(plan, on, presence)),
    transaction: (work, options) =>
      options.readOnly === true
        ? driver.transaction(work, options)
        : after(() => driver.transaction(work, options), tagsOfChange),
    sql: (request) =>
      request.readOnly
        ? driver.sql(request)
        : after(() => driver.sql(request), isStructural(request.text) ? tagsOfStructure : tagsOfChange),
    call: (request) =>
      request.readOnly ? driver.call(request) : after(() => driver.call(request), tagsOfChange),
    run: (statements) => after(() => driver.run(statements), tagsOfStructure),
    ...(as && { as: (persona) => announceWrites(as(persona), announce) }),
  }
}
