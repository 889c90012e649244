import type { Driver, DriverMaking, DriverSettings, RowLevelSecurity } from '#databases/drivers/driver.ts'
import { drivers } from '#databases/drivers/index.ts'

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
  /** Callers act as roles of the database, and its policies decide about rows. */
  readonly rowLevelSecurity: RowLevelSecurity | undefined
}

/** As the configuration's defaults are. */
export const DEFAULT_LIMITS = {
  max_connections: 10,
  connect_timeout: 5_000,
  statement_timeout: 30_000,
  idle_timeout: 30_000,
}

export const driverFor = (making: DriverMaking, settings: DriverSettings): Driver =>
  drivers[settings.driver](making, settings)
