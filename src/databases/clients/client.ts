import type { Driver } from '#databases/drivers/driver.ts'
import { type PostgresDriver, postgresDriver } from '#databases/drivers/postgres/driver.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Log } from '#kernel/log.ts'

/** A named database that callers reach through the gateway. */
export type Client = {
  readonly name: string
  readonly driver: Driver
  /** Set by the operator's configuration (or built in), or registered over HTTP. */
  readonly source: 'config' | 'database'
  /** Holds the log and audit tables: only to be read, and only by the admin key or a key bound to it. */
  readonly isLogging: boolean
  /** Refuses writes until it is thawed. */
  readonly isFrozen: boolean
}

/** What the drivers of all clients are made with. */
export type DriverMaking = { readonly config: Config; readonly log: Log }

export type DriverSettings = {
  readonly name: string
  readonly url: string
  readonly readOnly: boolean
  /** Milliseconds, as all of these. */
  readonly connect_timeout: number
  readonly statement_timeout: number
  readonly idle_timeout: number
  readonly max_connections: number
}

/** As the configuration's defaults are. */
export const DEFAULT_LIMITS = {
  max_connections: 10,
  connect_timeout: 5_000,
  statement_timeout: 30_000,
  idle_timeout: 30_000,
}

export function driverFor({ config, log }: DriverMaking, settings: DriverSettings): PostgresDriver {
  const { name, url, readOnly } = settings
  const isTrusted = config.gateway.unsafe_clients.includes(name)
  if (isTrusted)
    log.warn(
      { event: 'unsafe_client', client: name },
      `client ${name} may use a role with rights on the whole server`,
    )
  return postgresDriver({
    url,
    maxConnections: settings.max_connections,
    connectTimeout: settings.connect_timeout,
    statementTimeout: settings.statement_timeout,
    idleTimeout: settings.idle_timeout,
    applicationName: `gatehouse ${name}`,
    maxRows: config.gateway.max_rows,
    allowServerRights: isTrusted,
    readOnly,
  })
}
