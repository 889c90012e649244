import { limitsOf } from '#databases/drivers/client-limits.ts'
import type { DriverMaking, DriverSettings } from '#databases/drivers/driver.ts'
import { createPostgresDriver, type PostgresDriver } from '#databases/drivers/postgres/driver.ts'

/** Opens the driver of a configured or registered client. */
export function openPostgres(
  { config, controlServer, log, readAhead }: DriverMaking,
  settings: DriverSettings,
): PostgresDriver {
  const { name, url, direct_url: directUrl, readOnly } = settings
  const isTrusted = config.gateway.unsafe_clients.includes(name)
  if (isTrusted)
    log.warn(
      { event: 'unsafe_client', client: name },
      `client ${name} may use a role with rights on the whole server`,
    )
  return createPostgresDriver({
    name,
    url,
    directUrl,
    ...limitsOf(settings),
    streamConnections: config.gateway.pipelines.max_runs,
    streamTimeout: config.gateway.pipelines.timeout,
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
