import type { Driver, DriverMaking, DriverSettings } from '#databases/drivers/driver.ts'
import { scyllaDriver } from '#databases/drivers/scylla/driver.ts'
import { fail } from '#databases/failures.ts'
import { readScyllaUrl } from '#kernel/config/scylla-url.ts'

/** The driver of a client, as it is configured or registered. */
export function scyllaFor({ config }: DriverMaking, settings: DriverSettings): Driver {
  const address = readScyllaUrl(settings.url)
  // Registered addresses and configured ones have been through the same form.
  if (address === undefined) throw fail('client_unavailable')
  return scyllaDriver({
    address,
    maxConnections: settings.max_connections,
    connectTimeout: settings.connect_timeout,
    statementTimeout: settings.statement_timeout,
    idleTimeout: settings.idle_timeout,
    applicationName: `gatehouse ${settings.name}`,
    maxRows: config.gateway.max_rows,
    readOnly: settings.readOnly,
  })
}
