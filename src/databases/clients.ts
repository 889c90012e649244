import type { Config } from '#kernel/config/config.ts'
import type { Log } from '#kernel/log.ts'
import type { Driver } from './drivers/driver.ts'
import { type PostgresOptions, postgresDriver } from './drivers/postgres/driver.ts'

/** A named database that callers reach through the gateway. */
export type Client = {
  readonly name: string
  readonly driver: Driver
  /** Whether data operations need a key here; undefined: as `gateway.enforce_api_keys` says. */
  readonly enforceApiKeys: boolean | undefined
  /** Holds the log and audit tables: only to be read, and only by the admin key or a key bound to it. */
  readonly isLogging: boolean
}

export type Clients = {
  /** Sorted. */
  names(): readonly string[]
  find(name: string): Client | undefined
  close(): Promise<void>
}

export type ClientsOptions = {
  readonly config: Config
  /** Clients that exist without being configured: name → URL. */
  readonly builtIn: Readonly<Record<string, string>>
  /** The built-in logging client, for a role that may only read. */
  readonly loggingReaderUrl: string | undefined
  readonly log: Log
}

/** The registry: what the configuration names, and what is built in where it names nothing. */
export function openClients({ config, builtIn, loggingReaderUrl, log }: ClientsOptions): Clients {
  const { logging_client: loggingName, unsafe_clients: unsafe } = config.gateway
  const configured = Object.entries(config.clients).map(([name, settings]) => ({ name, ...settings }))
  const given = [
    ...configured,
    ...Object.entries(builtIn).map(([name, url]) => ({ name, url, ...BUILT_IN })),
    ...(loggingReaderUrl === undefined ? [] : [{ name: loggingName, url: loggingReaderUrl, ...BUILT_IN }]),
  ]
  const clients = new Map<string, Client>()
  for (const { name, ...settings } of given) {
    // What the operator configured wins over what is built in.
    if (clients.has(name)) continue
    const isLogging = name === loggingName
    const isTrusted = unsafe.includes(name)
    if (isTrusted)
      log.warn(
        { event: 'unsafe_client', client: name },
        `client ${name} may use a role with rights on the whole server`,
      )
    const driver = postgresDriver({
      ...optionsOf(settings),
      applicationName: `gatehouse ${name}`,
      maxRows: config.gateway.max_rows,
      allowServerRights: isTrusted,
      ...(isLogging ? { readOnly: true } : {}),
    })
    clients.set(name, { name, driver, enforceApiKeys: settings.enforce_api_keys, isLogging })
  }
  const names = [...clients.keys()].sort()
  return {
    names: () => names,
    find: (name) => clients.get(name),
    async close() {
      await Promise.all([...clients.values()].map(({ driver }) => driver.close()))
    },
  }
}

type Settings = Omit<Config['clients'][string], 'driver' | 'description'>

/** As the configuration's defaults are. */
const BUILT_IN = {
  max_connections: 10,
  connect_timeout: 5_000,
  statement_timeout: 30_000,
  idle_timeout: 30_000,
  enforce_api_keys: undefined,
}

const optionsOf = (
  settings: Omit<Settings, 'enforce_api_keys'>,
): Pick<
  PostgresOptions,
  'url' | 'maxConnections' | 'connectTimeout' | 'statementTimeout' | 'idleTimeout'
> => ({
  url: settings.url,
  maxConnections: settings.max_connections,
  connectTimeout: settings.connect_timeout,
  statementTimeout: settings.statement_timeout,
  idleTimeout: settings.idle_timeout,
})
