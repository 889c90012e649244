import type { DriverMaking, DriverSettings } from '#databases/drivers/driver.ts'
import { createPostgresDriver, type PostgresDriver } from '#databases/drivers/postgres/driver.ts'

/** Opens the driver of a configured or registered client. */
export function openPostgres(
  { config, controlServer, log, readAhead }: DriverMaking,
  settings: DriverSettings,
): PostgresDriver {
  const { name, url, readOnly } = settings
  const isTrusted = config.gateway.unsafe_clients.includes(name)
  if (isTrusted)
    log.warn(
      { event: 'unsafe_client', client: name },
      `client ${name} may use a role with rights on the whole server`,
    )
  return createPostgresDriver({
    url,
    maxConnections: settings.max_connections,
    sqlConnections: settings.sql_connections,
    maxWaiting: settings.max_waiting,
    connectTimeout: settings.connect_timeout,
    statementTimeout: settings.statement_timeout,
    idleTimeout: settings.idle_timeout,
    applicationName: `gatehouse ${name}`,
    maxRows: config.gateway.max_rows,
    answerBytes: config.limits.answer,
    allowServerRights: isTrusted,
    ...(controlServer && { controlServer }),
    readAhead,
    readOnly,
    rowLevelSecurity: settings.rowLevelSecurity,
    sqlRole: settings.sqlRole,
  })
}
