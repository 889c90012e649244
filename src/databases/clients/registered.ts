import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { DriverContext } from '#databases/drivers/driver.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import { fail } from '#databases/failures.ts'
import { CLIENT_LIMITS } from '#kernel/config/sections/database.ts'
import { type CoherentCache, createCoherentCache } from '#kernel/db/coherent-cache.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Environment, openAddress, resealUrls } from './addresses.ts'
import { announceOf, type Client, driverFor } from './client.ts'
import { type ClientRow, listClients, markSeen } from './store.ts'

/** A row and its client; no client when the row is inactive or its address cannot be read here. */
export type RegisteredClient = { readonly row: ClientRow; readonly client: Client | undefined }

type RegisteredClients = {
  /** Registered clients by name, from memory while the cache is coherent, otherwise from the control database. */
  all(): Promise<ReadonlyMap<string, RegisteredClient>>
  /** Clients as this process last knew them, possibly stale. */
  known(): ReadonlyMap<string, RegisteredClient>
  /** A client that callers reach; undefined for an unknown or inactive one. */
  find(name: string): Promise<Client | undefined>
  /** Keeps the client's driver open until the returned function is called, even if the client changes meanwhile. */
  retain(client: Client): (answered: boolean) => void
  close(): Promise<void>
}

/** Clients of table `service.database_client`: one driver each, replaced when a column that it depends on changes. */
export function openRegisteredClients(
  kernel: Kernel,
  environment: Environment,
  readAhead: () => MemoryBudget,
): RegisteredClients {
  const context = { ...kernel, readAhead }
  const users = countDriverUsers()
  const seen = new Map<string, number>()
  let current: ReadonlyMap<string, RegisteredClient> = new Map()
  let begun = 0
  let applied = 0

  const load = async (): Promise<ReadonlyMap<string, RegisteredClient>> => {
    const turn = ++begun
    const rows = await listClients(kernel.db)
    // A load that began later has finished: its rows are at least as new as this caller may expect.
    if (turn < applied) return current
    applied = turn
    for (const row of rows) resealUrls(kernel, row).catch(() => {})
    const before = current
    current = new Map(rows.map((row) => [row.clientName, renewed(context, environment, before, row)]))
    for (const [name, { client }] of before)
      if (client !== undefined && current.get(name)?.client !== client) users.retire(client)
    return current
  }

  // One entry for the whole table: there are few clients, and an unknown name costs no query either.
  const cache: CoherentCache<ReadonlyMap<string, RegisteredClient>> = createCoherentCache({
    coherence: kernel.coherence,
    max: 1,
    load,
    tags: () => ['database_client'],
  })
  const all = async () => cache.peek('all') ?? (await reached(() => cache.get('all'))) ?? current
  kernel.coherence.subscribe({
    // Closes replaced drivers even without a request. When this fails, the next request loads again.
    apply: (tag) => void (tag === 'database_client' && all().catch(() => {})),
    clear: () => {},
  })

  // Loads early for the first request, health and metrics. When this fails, the first request loads.
  all().catch(() => {})

  /** Records the last use, at most once a minute for each client and process. */
  const notice = (client: Client): void => {
    const found = current.get(client.name)
    if (found?.client !== client) return
    const { id } = found.row
    const now = performance.now()
    if (now - (seen.get(id) ?? Number.NEGATIVE_INFINITY) < SEEN_EVERY) return
    seen.set(id, now)
    // It is only information for operators; a failure of the database shows elsewhere.
    markSeen(kernel.db, id, kernel.now()).catch(() => {})
  }

  return {
    all,
    known: () => current,
    retain(client) {
      const release = users.retain(client)
      return (answered) => {
        release()
        if (answered) notice(client)
      }
    },
    async find(name) {
      const found = (await all()).get(name)
      if (found === undefined || !found.row.isActive) return undefined
      if (found.client === undefined)
        throw fail('client_unavailable', {
          hint: 'Its address cannot be read: set url or url_env_var, and its direct_url, again',
        })
      return found.client
    },
    async close() {
      await Promise.all([...current.values()].map(({ client }) => client?.driver.close()))
    },
  }
}

const SEEN_EVERY = 60_000

async function reached<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    // For any failure: a client that may have been frozen or removed is not used.
    throw edge('service_unavailable', { cause, headers: { 'retry-after': '1' } })
  }
}

/** Keeps the client when no column that its driver depends on has changed. */
function renewed(
  kernel: RegistryKernel,
  environment: Environment,
  before: ReadonlyMap<string, RegisteredClient>,
  row: ClientRow,
): RegisteredClient {
  const former = before.get(row.clientName)
  const isSame = former !== undefined && isMadeFrom(kernel, environment, former.row, row)
  return { row, client: isSame ? former.client : clientOf(kernel, environment, row) }
}

/** A URL that was sealed again is the same. */
const isMadeFrom = (
  kernel: RegistryKernel,
  environment: Environment,
  former: ClientRow,
  row: ClientRow,
): boolean =>
  MADE_FROM.every((column) => former[column] === row[column]) &&
  isDeepStrictEqual(openAddress(kernel, environment, former), openAddress(kernel, environment, row))

const MADE_FROM = ['id', 'isActive', 'isFrozen'] as const

type RegistryKernel = Kernel & Required<Pick<DriverContext, 'readAhead'>>

function clientOf(kernel: RegistryKernel, environment: Environment, row: ClientRow): Client | undefined {
  if (!row.isActive) return undefined
  const { clientName: name, isFrozen } = row
  const address = openAddress(kernel, environment, row)
  if (typeof address === 'string') {
    kernel.log.error(
      { event: 'client_unreadable', client: name },
      `the ${address} of client ${name} cannot be read`,
    )
    return undefined
  }
  const driver = driverFor(
    { ...kernel, announce: announceOf(kernel) },
    { name, ...address, readOnly: isFrozen, ...CLIENT_LIMITS },
  )
  return {
    name,
    driver,
    source: 'database',
    addressDigest: hash('sha256', address.url),
    isFrozen,
    rowLevelSecurity: undefined,
    isCached: true,
  }
}

/** Counts users of each client's driver; a replaced driver is closed after its last user. */
function countDriverUsers() {
  const users = new Map<Client, number>()
  const retired = new WeakSet<Client>()
  return {
    retain(client: Client): () => void {
      users.set(client, (users.get(client) ?? 0) + 1)
      return () => {
        const left = (users.get(client) ?? 1) - 1
        if (left > 0) return void users.set(client, left)
        users.delete(client)
        if (retired.has(client)) client.driver.close()
      }
    },
    retire(client: Client): void {
      retired.add(client)
      if (!users.has(client)) client.driver.close()
    },
  }
}
