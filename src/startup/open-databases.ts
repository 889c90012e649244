import { prepareLogging } from '#gateway/logging/logging-tables.ts'
import { unlessAborted } from '#kernel/abort.ts'
import type { Config } from '#kernel/config/config.ts'
import { clockOf, connectOnce } from '#kernel/db/connect.ts'
import type { InstallationCheck } from '#kernel/db/installation.ts'
import { migrate } from '#kernel/db/migrate.ts'
import { namedBy } from '#kernel/db/unusable-database.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { bindSealed } from './bind-sealed.ts'
import { inspectControl, type OpenedServer, type OpenOptions, withClient } from './control-database.ts'
import { openEmbedded } from './open-embedded.ts'
import { openServer } from './open-server.ts'

/** The databases that the service runs on, prepared once for all of its processes. */
export type ServiceDatabases = Omit<OpenedServer, 'separateAudit'> & {
  /** The migrations that this start has applied. */
  readonly applied: readonly string[]
  /** Identity of the logging database, once `openLogging` has found it. */
  readonly loggingDatabase?: string | undefined
}

/** URL of the role that writes the log and audit tables, past any pooler: the configured client, else the built-in one. */
export const loggingOwner = (
  config: Config,
  { logging }: Pick<ServiceDatabases, 'logging'>,
): string | undefined => configuredLogging(config).url ?? logging?.ownerUrl

/** Undefined if the logging client is the built-in one. */
export function configuredLogging({ clients, gateway }: Config): {
  readonly url: string | undefined
  readonly setting: string
} {
  const { direct_url, url } = clients[gateway.logging_client] ?? {}
  const setting = direct_url === undefined ? 'url' : 'direct_url'
  return { url: direct_url ?? url, setting: `clients.${gateway.logging_client}.${setting}` }
}

/** Starts the embedded server unless another one is configured, creates missing databases and roles, and migrates. */
export async function openDatabases(options: OpenOptions): Promise<ServiceDatabases> {
  const { config, report, createsMissing, signal } = options
  const isEmbedded = sessionUrl(config) === undefined
  const onServer = () => onControl(config, (url) => openServer(options, url))
  const opened = await (isEmbedded ? openEmbedded(options) : unlessAborted(signal, onServer()))
  if (!createsMissing || !config.database.migrate) return { ...opened, applied: [] }
  try {
    report('migrate')
    const migrating = (url: string) => migrate(url, { report, signal })
    const { controlUrl } = opened
    const applied = await (isEmbedded ? migrating(controlUrl) : onControl(config, migrating))
    await bindSealedAt(sessionUrl(config) ?? controlUrl, options.secrets)
    await opened.separateAudit()
    return { ...opened, applied }
  } catch (error) {
    await opened.stop()
    throw error
  }
}

async function bindSealedAt(url: string, secrets: Secrets): Promise<void> {
  const control = connectOnce(url)
  try {
    await bindSealed({ db: control.db, secrets, now: await clockOf(control.db) })
  } finally {
    await control.close()
  }
}

/** URL of the control database without a pooler; undefined with the embedded server. */
export const sessionUrl = ({ database }: Config): string | undefined => database.direct_url ?? database.url

/** Errors of the database name the setting of its URL. */
function onControl<T>(config: Config, work: (url: string) => Promise<T>): Promise<T> {
  const { direct_url, url = '' } = config.database
  return direct_url === undefined
    ? namedBy('database.url (DATABASE_URL)', url, () => work(url))
    : namedBy('database.direct_url', direct_url, () => work(direct_url))
}

/** Creates the log and audit tables, if there is a database for them, and returns which one it is. */
export async function openLogging(
  config: Config,
  databases: Pick<ServiceDatabases, 'logging'>,
): Promise<string | undefined> {
  const owner = loggingOwner(config, databases)
  const reader = databases.logging?.reader
  if (owner === undefined) return undefined
  return namedBy(configuredLogging(config).setting, owner, () => prepareLogging(owner, reader))
}

/**
 * Before a secret or key is generated: refuses a control database of another installation or of a newer version. Of two processes that
 * generate a secret at the same time, `establishInstallation` refuses the second.
 */
export async function expectOwnDatabase(config: Config, asking: InstallationCheck): Promise<void> {
  await onControl(config, (url) => withClient(url, (client) => inspectControl(client, { ...asking, config })))
}
