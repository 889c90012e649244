import { limitsOf } from '#databases/drivers/client-limits.ts'
import type { DriverContext, DriverSettings } from '#databases/drivers/driver.ts'
import { createPostgresDriver, type PostgresDriver } from '#databases/drivers/postgres/driver.ts'

/** The driver of a configured or registered client; it connects at its first statement. */
export function openPostgres(context: DriverContext, settings: DriverSettings): PostgresDriver {
  const { config, controlServer, readAhead } = context
  const { name, url, direct_url: directUrl, readOnly, rowLevelSecurity, sqlRole } = settings
  const { pipelines, max_rows: maxRows } = config.gateway
  return createPostgresDriver({
    name,
    url,
    directUrl,
    ...limitsOf(settings),
    // A run of a pipeline reads its source by one stream, as long as the run may take.
    streamConnections: pipelines.max_runs,
    streamTimeout: pipelines.timeout,
    applicationName: `gatehouse ${name}`,
    maxRows,
    answerBytes: config.limits.answer,
    allowServerRights: allowsServerRights(context, name),
    ...(controlServer && { controlServer }),
    readAhead,
    readOnly,
    rowLevelSecurity,
    sqlRole,
  })
}

function allowsServerRights({ config, log }: DriverContext, client: string): boolean {
  const isUnsafe = config.gateway.unsafe_clients.includes(client)
  if (isUnsafe)
    log.warn(
      { event: 'unsafe_client', client },
      `client ${client} may use a role with rights on the whole server`,
    )
  return isUnsafe
}
