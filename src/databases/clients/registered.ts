import type { DriverMaking } from '#databases/drivers/driver.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import { fail } from '#databases/failures.ts'
import { clientUrlForms, isDriverName } from '#kernel/config/addresses.ts'
import { type CoherentCache, coherentCache } from '#kernel/db/cache.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { announceOf, type Client, DEFAULT_LIMITS, driverFor } from './client.ts'
import { type ClientRow, listClients, markSeen, resealClient } from './store.ts'

/** Reads one variable of the environment that the service was started in. */
export type Environment = (name: string) => string | undefined

/** A row, and the driver made from it; none when it is inactive, or its address cannot be read here. */
export type RegisteredClient = { readonly row: ClientRow; readonly client: Client | undefined }

export type RegisteredClients = {
  /** As the control database has them, by name; from memory as long as that may be believed. */
  all(): Promise<ReadonlyMap<string, RegisteredClient>>
  /** Those that this process knew last, believed or not. */
  known(): ReadonlyMap<string, RegisteredClient>
  /** Of a client that callers reach; undefined for one that is unknown or inactive. */
  find(name: string): Promise<Client | undefined>
  /** Keeps the client's driver open until the answer of this is called, even if the client is changed meanwhile. */
  retain(client: Client): (answered: boolean) => void
  close(): Promise<void>
}

/** Clients of table `service.database_client`: one driver each, renewed when what it was made from changes. */
export function openRegisteredClients(
  kernel: Kernel,
  environment: Environment,
  readAhead: () => MemoryBudget,
): RegisteredClients {
  const making = { ...kernel, readAhead }
  const users = countDriverUsers()
  const seen = new Map<string, number>()
  let current: ReadonlyMap<string, RegisteredClient> = new Map()
  let begun = 0
  let applied = 0

  const load = async (): Promise<ReadonlyMap<string, RegisteredClient>> => {
    const turn = ++begun
    const rows = await listClients(kernel.db)
    // A load that began later has answered: its rows are at least as new as this caller may expect.
    if (turn < applied) return current
    applied = turn
    for (const row of rows) resealed(kernel, row)?.catch(() => {})
    const before = current
    current = new Map(rows.map((row) => [row.clientName, renewed(making, environment, before, row)]))
    for (const [name, { client }] of before)
      if (client !== undefined && current.get(name)?.client !== client) users.retire(client)
    return current
  }

  // One entry, the whole table: there are few clients, and a name that is not there costs no question either.
  const cache: CoherentCache<ReadonlyMap<string, RegisteredClient>> = coherentCache({
    coherence: kernel.coherence,
    max: 1,
    load,
    tags: () => ['database_client'],
  })
  const all = async () => cache.peek('all') ?? (await reached(() => cache.get('all'))) ?? current
  kernel.coherence.subscribe({
    // Lets go of what was changed even where no request comes. When this fails, the next request asks again.
    apply: (tag) => void (tag === 'database_client' && all().catch(() => {})),
    clear: () => {},
  })

  // So that the first request finds them here, and health and metrics know them. Without it, the first request reads.
  all().catch(() => {})

  /** At most one write a minute and process for each client that is in use. */
  const notice = (client: Client): void => {
    const found = current.get(client.name)
    if (found?.client !== client) return
    const { id } = found.row
    const now = performance.now()
    if (now - (seen.get(id) ?? Number.NEGATIVE_INFINITY) < SEEN_EVERY) return
    seen.set(id, now)
    // It is for people to look at; whatever keeps it from being written shows elsewhere.
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
        throw fail('client_unavailable', { hint: 'Its address cannot be read: set url or url_env_var anew' })
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
    // Whatever the reason: a client that may have been frozen or removed is not used.
    throw edge('service_unavailable', { cause, headers: { 'retry-after': '1' } })
  }
}

/** The entry as before when nothing that its driver was made from has changed. */
function renewed(
  kernel: Making,
  environment: Environment,
  before: ReadonlyMap<string, RegisteredClient>,
  row: ClientRow,
): RegisteredClient {
  const former = before.get(row.clientName)
  const isSame = former !== undefined && MADE_FROM.every((column) => former.row[column] === row[column])
  return { row, client: isSame ? former.client : clientOf(kernel, environment, row) }
}

/** After a rotation of the secret: what the previous one sealed, under the present one. If this fails the next load tries. */
function resealed({ db, secrets }: Kernel, { id, sealedUrl }: ClientRow): Promise<void> | undefined {
  if (sealedUrl === null || secrets.isCurrent(sealedUrl)) return undefined
  const url = secrets.open('client-url', sealedUrl)
  return url === undefined ? undefined : resealClient(db, id, sealedUrl, secrets.seal('client-url', url))
}

const MADE_FROM = ['id', 'driver', 'sealedUrl', 'urlEnvVar', 'isActive', 'isFrozen'] as const

type Making = Kernel & Required<Pick<DriverMaking, 'readAhead'>>

function clientOf(kernel: Making, environment: Environment, row: ClientRow): Client | undefined {
  if (!row.isActive) return undefined
  const { clientName: name, driver: driverName, isFrozen } = row
  const url = urlOf(kernel, environment, row)
  if (url === undefined || !isDriverName(driverName)) {
    kernel.log.error(
      { event: 'client_unreadable', client: name },
      `the address of client ${name} cannot be read`,
    )
    return undefined
  }
  const driver = driverFor(
    { ...kernel, announce: announceOf(kernel) },
    { name, driver: driverName, url, readOnly: isFrozen, ...DEFAULT_LIMITS },
  )
  return {
    name,
    driver,
    source: 'database',
    isLogging: false,
    isFrozen,
    rowLevelSecurity: undefined,
    isCached: true,
  }
}

/** Where a client's database is, and what speaks to it there. */
export type ClientAddress = Pick<ClientRow, 'driver' | 'sealedUrl' | 'urlEnvVar'>

/** The URL in clear; undefined when it was sealed under a secret that is gone, or is none that the driver takes. */
export function urlOf(
  { secrets }: Pick<Kernel, 'secrets'>,
  environment: Environment,
  { driver, sealedUrl, urlEnvVar }: ClientAddress,
): string | undefined {
  const text = urlEnvVar === null ? secrets.open('client-url', sealedUrl ?? '') : environment(urlEnvVar)
  return isDriverName(driver) ? clientUrlForms[driver].parse(text ?? '') : undefined
}

/** Counts who uses the driver of a client, so that one that was replaced is closed behind its last user. */
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
