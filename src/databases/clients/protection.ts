import type { Config } from '#kernel/config/config.ts'
import { BUILT_IN_CLIENT } from '#kernel/config/sections/database.ts'
import { createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Db } from '#kernel/db/connect.ts'
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
  /** The client as this process last found it. */
  asLastFound(client: ConfiguredClient): ConfiguredClient
  /** Clients with row-level security that were opened. What runs goes on with the driver of before. */
  opened(): Iterable<ConfiguredClient>
  close(): Promise<void>
}

export function createProtection(
  { coherence, db }: Pick<Kernel, 'coherence' | 'db'>,
  configured: ReadonlyMap<string, ConfiguredClient>,
): Protection {
  const cache = createCoherentCache<ReadonlySet<string>>({
    coherence,
    max: 1,
    load: () => listProtected(db),
    tags: () => [TAG],
  })
  const twins = new Map<string, ConfiguredClient>()
  const found = new Map<string, ConfiguredClient>()

  /**
   * As if all were switched on while that cannot be read: keys may be known from memory, and would pass the policies by. Callers with the
   * right to what policies hide go on.
   */
  const read = async (): Promise<ReadonlySet<string>> =>
    (await cache.get(ALL).catch(() => new Set(configured.keys()))) ?? NONE

  function chosen(client: ConfiguredClient, names: ReadonlySet<string>): ConfiguredClient {
    const { name, protect } = client
    const isOn = protect !== undefined && names.has(name)
    const one = isOn ? (twins.get(name) ?? protect()) : client
    if (isOn) twins.set(name, one)
    found.set(name, one)
    return one
  }

  return {
    asDecided: async (client) =>
      client.protect === undefined ? client : chosen(client, cache.peek(ALL) ?? (await read())),
    isAsDecided({ name, rowLevelSecurity }) {
      if (configured.get(name)?.protect === undefined) return true
      return cache.peek(ALL)?.has(name) === (rowLevelSecurity !== undefined)
    },
    asLastFound: (client) => found.get(client.name) ?? client,
    opened: () => twins.values(),
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
