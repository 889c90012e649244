import type { Clients } from '#databases/clients/clients.ts'
import { type Action, FIXED_RIGHTS, openedBy } from '#kernel/rights.ts'
import { checkClients, checkRights } from './keys.ts'

type AskedReach = {
  readonly client_name?: string | null
  readonly rights: readonly string[]
  readonly client_overrides?: readonly string[]
}

/** Everything that a key opens on one client. */
type Reached = {
  /** Null: every client but the logging one. */
  readonly client_name: string | null
  /** Requests name the client; pipelines of the key may name further ones. */
  readonly through: 'requests' | 'pipelines'
  readonly is_known: boolean
  /** Null where it depends on the client. */
  readonly has_row_level_security: boolean | null
  readonly every_table: Action[]
  readonly tables: { table: string; actions: Action[] }[]
  readonly operations: { right: string; description: string }[]
}

/** Resolves rights to clients, tables and operations, as requests and pipelines would be judged. */
export async function reachOf(clients: Clients, asked: AskedReach): Promise<Reached[]> {
  const { client_name: bound = null, rights, client_overrides: overrides = ['*'] } = asked
  checkClients(asked)
  checkRights(rights, bound)
  const own = await reachedOn(clients, bound, rights, bound !== null)
  const runsPipelines = own.operations.some(({ right }) => right === 'pipelines.run')
  // A key without a client names any of them in its requests already.
  if (bound === null || !runsPipelines) return [own]
  const named = overrides.includes('*') ? [null] : overrides.filter((name) => name !== bound)
  const others = await Promise.all(named.map((name) => reachedOn(clients, name, rights, false)))
  return [own, ...others.map(byPipelines)]
}

async function reachedOn(
  clients: Clients,
  name: string | null,
  rights: readonly string[],
  isBound: boolean,
): Promise<Reached> {
  const client = name === null ? undefined : await clients.find(name)
  const hasPolicies = client?.rowLevelSecurity !== undefined
  const { everyTable, tables, operations } = openedBy(rights, { isBound, hasPolicies })
  return {
    client_name: name,
    through: 'requests',
    is_known: name === null || client !== undefined,
    has_row_level_security: name === null ? null : hasPolicies,
    every_table: everyTable,
    tables,
    operations: operations.map((right) => ({ right, description: FIXED_RIGHTS[right] })),
  }
}

/** They read rows of one table and write rows of another one. */
const byPipelines = (reached: Reached): Reached => ({
  ...reached,
  through: 'pipelines',
  every_table: reached.every_table.filter(isOfPipelines),
  tables: reached.tables
    .map(({ table, actions }) => ({ table, actions: actions.filter(isOfPipelines) }))
    .filter(({ actions }) => actions.length > 0),
  operations: reached.operations.filter(({ right }) => right === 'gateway.bypass_row_level_security'),
})

const isOfPipelines = (action: Action): boolean => action !== 'delete'
