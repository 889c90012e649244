import type { Config } from '#kernel/config/config.ts'
import { BUILT_IN_CLIENT } from '#kernel/config/sections/database.ts'
import { createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Db } from '#kernel/db/connect.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Client } from './client.ts'
import type { ConfiguredClient } from './configured.ts'

/**
 * Row-level security of the built-in client where no setting decides about it: off, until it is switched on over HTTP. It is never switched
 * off in this way, since keys that are safe in pages would then show every row.
 */
type Protection = {
  /** The client as callers find it now. */
  asDecided(client: ConfiguredClient): Promise<ConfiguredClient>
  /** Whether a client is known to be as it was found, without a query. */
  isAsDecided(client: Pick<Client, 'name' | 'rowLevelSecurity'>): boolean
  /** The client as this process last knew it. */
  asLastKnown(client: ConfiguredClient): ConfiguredClient
  close(): Promise<void>
}

export function createProtection(
  { coherence, db }: Pick<Kernel, 'coherence' | 'db'>,
  configured: ReadonlyMap<string, ConfiguredClient>,
): Protection {
  /** Undefined before the first look. */
  let known: ReadonlySet<string> | undefined
  const cache = createCoherentCache<ReadonlySet<string>>({
    coherence,
    max: 1,
    async load() {
      known = await listProtected(db)
      return known
    },
    tags: () => [TAG],
  })
  const twins = new Map<string, ConfiguredClient>()

  async function read(): Promise<ReadonlySet<string>> {
    try {
      return (await cache.get(ALL)) ?? NONE
    } catch (error) {
      // Callers whose rights a protection takes away need the control database too, so what was known last is enough for the others.
      if (known === undefined)
        throw edge('service_unavailable', { cause: error, headers: { 'retry-after': '1' } })
      return known
    }
  }

  function chosen(client: ConfiguredClient, names: ReadonlySet<string>): ConfiguredClient {
    const { name, protect } = client
    if (protect === undefined || !names.has(name)) return client
    const twin = twins.get(name) ?? protect()
    twins.set(name, twin)
    return twin
  }

  return {
    asDecided: async (client) =>
      client.protect === undefined ? client : chosen(client, cache.peek(ALL) ?? (await read())),
    isAsDecided({ name, rowLevelSecurity }) {
      if (configured.get(name)?.protect === undefined) return true
      return cache.peek(ALL)?.has(name) === (rowLevelSecurity !== undefined)
    },
    asLastKnown: (client) => chosen(client, known ?? NONE),
    async close() {
      await Promise.all([...twins.values()].map(({ driver }) => driver.close()))
    },
  }
}

/** The tag that the triggers of `protected_client` send. */
const TAG = 'protected_client'
/** One entry for all. */
const ALL = 'all'
const NONE: ReadonlySet<string> = new Set()

/** Clients whose row-level security was switched on over HTTP. */
export const listProtected = async (db: Db): Promise<ReadonlySet<string>> =>
  new Set(
    (await db.selectFrom('protectedClient').select('clientName').execute()).map(
      ({ clientName }) => clientName,
    ),
  )

/** False if it is on already. */
export async function insertProtected(db: Db, clientName: string, protectedAt: Date): Promise<boolean> {
  const row = await db
    .insertInto('protectedClient')
    .values({ clientName, protectedAt })
    .onConflict((conflict) => conflict.doNothing())
    .returning('clientName')
    .executeTakeFirst()
  return row !== undefined
}

/** Whether a client has row-level security, for commands, which open no clients. */
export async function isProtectedClient(config: Config, db: Db, name: string): Promise<boolean> {
  const { url, row_level_security: security } = config.clients[name] ?? {}
  if (security?.enabled !== undefined) return security.enabled
  return name === BUILT_IN_CLIENT && url === undefined && (await listProtected(db)).has(name)
}
