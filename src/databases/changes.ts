import type { Table } from './catalogue.ts'
import type { Driver, Held } from './drivers/driver.ts'
import type { WritePlan } from './plan.ts'

/**
 * Which kept answers a write ends, as tags that all processes are told of. A table that stands alone has a tag of its own; `any` is on
 * answers from everything else; `all` on every answer of the client.
 */
const own = (client: string, { schema, name }: Table): string => `rows:${client}:${schema}.${name}`
const any = (client: string): string => `rows:${client}:any`
const all = (client: string): string => `rows:${client}:all`

/** An answer from these tables; with policies in between it may rest on others. */
export function tagsOfAnswer(
  client: string,
  tables: readonly Table[],
  hasPolicies: boolean,
): readonly string[] {
  const tags = tables.map((table) =>
    table.standsAlone === true && !hasPolicies ? own(client, table) : any(client),
  )
  return [...new Set([all(client), ...tags])]
}

const tagsOfWrite = (client: string, table: Table): readonly string[] =>
  table.standsAlone === true ? [own(client, table), any(client)] : [all(client)]

export type Announce = (tags: readonly string[]) => Promise<void>

/** The same driver; but whatever may have changed rows answers when no process gives an older answer any more. */
export function announcing(driver: Driver, client: string, announce: Announce): Driver {
  /** Also after a failure: a connection that broke off may have committed. */
  const after = async <T>(work: Promise<T>, tags: readonly string[]): Promise<T> => {
    try {
      return await work
    } finally {
      await announce(tags)
    }
  }
  /** On a held connection nothing is committed before the end of `hold`. */
  const write = <T>(plan: WritePlan, on: Held | undefined, work: Promise<T>): Promise<T> =>
    on === undefined ? after(work, tagsOfWrite(client, plan.table)) : work
  const whole = [all(client)]
  const { as } = driver
  return {
    ...driver,
    insert: (plan, on, presence) => write(plan, on, driver.insert(plan, on, presence)),
    update: (plan, on, presence) => write(plan, on, driver.update(plan, on, presence)),
    delete: (plan, on, presence) => write(plan, on, driver.delete(plan, on, presence)),
    hold: (work, options) =>
      options.readOnly === true ? driver.hold(work, options) : after(driver.hold(work, options), whole),
    sql: (request) => (request.readOnly ? driver.sql(request) : after(driver.sql(request), whole)),
    call: (request) => (request.readOnly ? driver.call(request) : after(driver.call(request), whole)),
    run: (statements) => after(driver.run(statements), whole),
    ...(as && { as: (persona) => announcing(as(persona), client, announce) }),
  }
}
