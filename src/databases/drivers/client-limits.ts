import type { DriverSettings } from '#databases/drivers/driver.ts'

/** The limits of a client as the drivers take them. Times are in milliseconds. */
export const limitsOf = (settings: DriverSettings) => ({
  maxConnections: settings.max_connections,
  sqlConnections: settings.sql_connections,
  maxWaiting: settings.max_waiting,
  connectTimeout: settings.connect_timeout,
  statementTimeout: settings.statement_timeout,
  idleTimeout: settings.idle_timeout,
})
