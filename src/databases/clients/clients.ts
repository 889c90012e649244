import type { Driver } from '#databases/drivers/driver.ts'
import { createReadAheadBudgets } from '#databases/drivers/memory-budget.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Environment } from './addresses.ts'
import { structureIn } from './announce-writes.ts'
import { announceOf, type Client } from './client.ts'
import { type ConfiguredClient, type ConfiguredOptions, createConfiguredClients } from './configured.ts'
import { type CustomClients, createCustomClients } from './custom.ts'
import { createClientLocation, type LocatedClient } from './located.ts'
import { createProtection } from './protection.ts'
import { openRegisteredClients, type RegisteredClient } from './registered.ts'
import { createRestoringClients } from './restoring.ts'

export type { Client, LocatedClient }

/** All clients (databases that callers reach by name): those of the configuration, then those registered over HTTP. */
export type Clients = {
  /** Names of the clients that callers reach, sorted. */
  names(): Promise<readonly string[]>
  /** Undefined for an unknown or inactive client. Served from memory, except for a moment after a change. */
  find(name: string): Promise<Client | undefined>
  /** For everything that a caller does on a client. Throws the failure of a database that does not tell which one it is. */
  locate(client: Client): Promise<LocatedClient>
  /**
   * Keeps the client's driver open until the returned function is called, even if the client changes meanwhile. `answered`: the database
   * did what the request asked for.
   */
  retain(client: Client): (answered: boolean) => void
  /** Whether a configured client is still as `find` returned it; others may have changed. */
  isAsFound(client: Pick<Client, 'name' | 'isFrozen' | 'source' | 'rowLevelSecurity'>): boolean
  /** Clients with an open driver in this process, as it last knew them. */
  opened(): readonly Client[]
  /** The client of a project that the request names. */
  readonly custom: CustomClients
  /** Clients that only the operator can change, by name, as the configuration has them. `find` tells what callers reach. */
  readonly configured: ReadonlyMap<string, ConfiguredClient>
  /** Only configured clients can have it. */
  hasRowLevelSecurity(name: string): Promise<boolean>
  /** Registered clients by name, including inactive ones and those hidden by a configured client of the same name. */
  registered(): Promise<ReadonlyMap<string, RegisteredClient>>
  /** Reads the variable that `url_env_var` names. */
  readonly environment: Environment
  close(): Promise<void>
}

type ClientsOptions = Omit<
  ConfiguredOptions,
  'config' | 'controlServer' | 'log' | 'readAhead' | 'announce'
> & {
  readonly environment: Environment
  /** Identity of the logging database; without it, the logging client is asked when the first caller of another client comes. */
  readonly loggingDatabase?: string | undefined
}

export function openClients(kernel: Kernel, options: ClientsOptions): Clients {
  const { config, controlServer, log } = kernel
  const { environment, loggingDatabase } = options
  const readAhead = createReadAheadBudgets(config.limits.answer)
  const configured = createConfiguredClients({
    ...options,
    config,
    controlServer,
    log,
    readAhead,
    announce: announceOf(kernel),
  })
  const registry = openRegisteredClients(kernel, environment, readAhead)
  const restoring = createRestoringClients(kernel)
  const protection = createProtection(kernel, configured)
  const logging = configured.get(config.gateway.logging_client)
  const location = createClientLocation(
    logging && { client: logging, identity: async () => loggingDatabase ?? logging.driver.identity() },
    (client) => retain(client),
  )
  const retain: Clients['retain'] = (client) => registry.retain(restoring.original(location.original(client)))
  const opened = () => [
    ...[...configured.values()].map(protection.asLastFound),
    ...[...registry.known()]
      .filter(([name]) => !configured.has(name))
      .flatMap(([, { client }]) => (client === undefined ? [] : [client])),
  ]
  const drivers = () =>
    new Set([...configured.values(), ...protection.opened(), ...opened()].map(({ driver }) => driver))
  kernel.coherence.subscribe({
    apply(tag) {
      const database = structureIn(tag)
      if (database !== undefined) for (const driver of drivers()) noticeChange(driver, database)
    },
    // Some announcements may have been missed.
    clear: () => {
      for (const driver of drivers()) driver.structureChanged?.('')
    },
  })
  return {
    configured,
    custom: createCustomClients(kernel),
    registered: registry.all,
    environment,
    retain,
    locate: location.locate,
    isAsFound: (client) => restoring.isAsFound(client) && protection.isAsDecided(client),
    opened,
    async names() {
      const active = [...(await registry.all()).values()].filter(({ row }) => row.isActive)
      return [...new Set([...configured.keys(), ...active.map(({ row }) => row.clientName)])].sort()
    },
    async find(name) {
      const fixed = configured.get(name)
      const client = fixed === undefined ? await registry.find(name) : await protection.asDecided(fixed)
      return client === undefined ? undefined : restoring.asFound(client)
    },
    async hasRowLevelSecurity(name) {
      const fixed = configured.get(name)
      return fixed !== undefined && (await protection.asDecided(fixed)).rowLevelSecurity !== undefined
    },
    async close() {
      await protection.close()
      await Promise.all([...configured.values()].map(({ driver }) => driver.close()))
      await registry.close()
    },
  }
}

/** A driver whose writes are not announced still hears of restores. */
const noticeChange = (driver: Driver, database: string): void =>
  driver.structureChanged === undefined ? driver.invalidate() : driver.structureChanged(database)
