import { tagsOfRestore } from '#databases/clients/announce-writes.ts'
import { createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Client } from './client.ts'
import { CUSTOM_CLIENT } from './custom.ts'
import { listRestoring } from './store.ts'

/** Clients whose database a restore writes at the moment, also if the restore is of another client. They refuse writes, as frozen clients do. */
type RestoringClients = {
  /** The client as callers find it now. */
  asFound(client: Client): Promise<Client>
  /** Whether a configured client is known to be as it was found, without a query. */
  isAsFound(client: Pick<Client, 'name' | 'isFrozen' | 'source'>): boolean
  /** The client that `asFound` was given. */
  original(client: Client): Client
}

/**
 * The rows of running restores decide, so a client is as it was before when its restore has ended, also by a crash. Without the control
 * database, configured clients go on as last known; writes then wait for the locks of the restore.
 */
export function createRestoringClients({
  coherence,
  db,
}: Pick<Kernel, 'coherence' | 'db'>): RestoringClients {
  let known: Restores = NO_RESTORES
  const cache = createCoherentCache<Restores>({
    coherence,
    max: 1,
    async load() {
      known = restoresOf(await listRestoring(db))
      return known
    },
    tags: () => [TAG],
  })
  const frozen = new WeakMap<Client, Client>()
  const originals = new WeakMap<Client, Client>()

  function freeze(client: Client): Client {
    const copy = frozen.get(client) ?? { ...client, isFrozen: true, isRestoring: true as const }
    frozen.set(client, copy)
    originals.set(copy, client)
    return copy
  }

  return {
    async asFound(client) {
      const restores = cache.peek(ALL) ?? (await cache.get(ALL).catch(() => known)) ?? known
      return (await isRestored(client, restores)) ? freeze(client) : client
    },
    isAsFound({ name, isFrozen, source }) {
      if (name === CUSTOM_CLIENT) return true
      const restores = cache.peek(ALL)
      if (restores === undefined) return false
      const { names, databases } = restores
      // Which database a client has may take a query.
      return source === 'config' && (names.has(name) ? isFrozen : !isFrozen && databases.size === 0)
    },
    original: (client) => originals.get(client) ?? client,
  }
}

type Restores = { readonly names: ReadonlySet<string>; readonly databases: ReadonlySet<string> }

const NO_RESTORES: Restores = { names: new Set(), databases: new Set() }

const restoresOf = (rows: Awaited<ReturnType<typeof listRestoring>>): Restores => ({
  names: new Set(rows.map(({ clientName }) => clientName)),
  databases: new Set(rows.flatMap(({ database }) => database ?? [])),
})

/** A client whose database does not answer writes nothing. */
async function isRestored({ name, driver }: Client, { names, databases }: Restores): Promise<boolean> {
  if (names.has(name) || databases.size === 0) return names.has(name)
  const database = await driver.identity().catch(() => undefined)
  return database !== undefined && databases.has(database)
}

/** The tag that the trigger of `backup_job` sends. */
const TAG = 'backup_restores'
/** One entry for all: there are few restores. */
const ALL = 'all'

/** The database of a client, for the row of its restore; undefined where its server does not tell. */
export const databaseOf = ({ driver }: Pick<Client, 'driver'>): Promise<string | undefined> =>
  driver.identity()

/** After a restore: no process answers from what it knew of the client, neither rows nor structure. */
export async function announceRestore(
  { coherence, log }: Pick<Kernel, 'coherence' | 'log'>,
  { driver }: Pick<Client, 'driver'>,
): Promise<void> {
  driver.invalidate()
  const database = await driver.identity().catch(() => undefined)
  await coherence.announce(tagsOfRestore(database)).catch((error: unknown) => {
    log.error({ event: 'announcement_lost', error }, 'other processes were not notified of a restore')
  })
}
