import { existsSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import type { EmbeddedSource } from '#gateway/backups/sources.ts'
import { prepareLogging } from '#gateway/logging-tables.ts'
import { unlessAborted } from '#kernel/abort.ts'
import { systemClock } from '#kernel/clock.ts'
import type { Config } from '#kernel/config/config.ts'
import { embeddedFolder, noDatabase } from '#kernel/data-folder.ts'
import { separateAuditOwner } from '#kernel/db/audit-owner.ts'
import {
  adviceFor,
  type BuiltInDatabases,
  type BuiltInNames,
  builtInDatabases,
  builtInNames,
  ensureBuiltIn,
} from '#kernel/db/built-in-databases.ts'
import { joinEmbedded } from '#kernel/db/embedded/join.ts'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import {
  type Asking,
  establishInstallation,
  notEstablished,
  recordCopy,
  recordSecret,
  type Seen,
  type Standing,
  seeInstallation,
} from '#kernel/db/installation.ts'
import { migrate, pendingMigrations } from '#kernel/db/migrate.ts'
import { expectNoPooler, lookThroughPooler, settleRole } from '#kernel/db/pooler.ts'
import { provision } from '#kernel/db/provision.ts'
import type { PoolerAddress } from '#kernel/db/session-settings.ts'
import { namedBy } from '#kernel/db/unusable-database.ts'
import { generatedOnce } from '#kernel/installation-secrets.ts'
import type { Random } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'

/** The databases that the service runs on, prepared once for all of its processes. */
export type ServiceDatabases = BuiltInDatabases & {
  /** The control database, without a pooler. */
  readonly controlUrl: string
  /** The pooler, for statements that need no session of their own. */
  readonly pooler: PoolerAddress | undefined
  /** Undefined with a server of the operator's. */
  readonly embedded: EmbeddedSource | undefined
  /** For messages: `embedded PostgreSQL 18.4 in ./data`. */
  readonly describes: string
  /** Remaining work for the operator. */
  readonly advice: string | undefined
  /** The migrations that this start has applied. */
  readonly applied: readonly string[]
  readonly died: Promise<{ readonly log: string }>
  /** Kills the server when it has not ended within that many milliseconds. */
  stop(within?: number): Promise<void>
}

export type OpenOptions = Asking & {
  readonly config: Config
  readonly random: Random
  readonly report: (step: string) => void
  /** Aborts the start. */
  readonly signal?: AbortSignal | undefined
  /** Uses the embedded server that another process of the service runs already, instead of failing. */
  readonly join?: boolean
  /** True for `serve` and `migrate`, which create what is missing. Every other command uses what exists and changes nothing. */
  readonly makes: boolean
}

/** URL of the role that writes the log and audit tables: the configured client, else the built-in one. */
export const loggingOwner = (
  config: Config,
  { logging }: Pick<ServiceDatabases, 'logging'>,
): string | undefined => config.clients[config.gateway.logging_client]?.url ?? logging?.ownerUrl

/** Starts the embedded server unless another one is configured, creates missing databases and roles, and migrates. */
export async function openDatabases(options: OpenOptions): Promise<ServiceDatabases> {
  const { config, report, makes, signal } = options
  const opened =
    sessionUrl(config) === undefined
      ? await openEmbedded(options)
      : await unlessAborted(
          signal,
          onControl(config, (url) => openServer(options, url)),
        )
  if (!makes || !config.database.migrate) return { ...opened, applied: [] }
  try {
    report('migrate')
    const migrating = (url: string) => migrate(url, { report, signal })
    const { controlUrl } = opened
    const isEmbedded = config.database.url === undefined
    const applied = await (isEmbedded ? migrating(controlUrl) : onControl(config, migrating))
    await opened.separateAudit()
    return { ...opened, applied }
  } catch (error) {
    await opened.stop()
    throw error
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

/** Creates the log and audit tables, if there is a database for them. */
export async function openLogging(
  config: Config,
  databases: Pick<ServiceDatabases, 'logging'>,
): Promise<void> {
  const owner = loggingOwner(config, databases)
  const reader = databases.logging?.reader
  if (owner !== undefined) await namedBy(loggingSetting(config), owner, () => prepareLogging(owner, reader))
}

export const loggingSetting = ({ gateway }: Config): string => `clients.${gateway.logging_client}.url`

type Opened = Omit<ServiceDatabases, 'applied'> & {
  /** Gives the audit trail its own owner, if roles can be created. */
  separateAudit(): Promise<void>
}

async function openEmbedded(options: OpenOptions): Promise<Opened> {
  const { config, makes, random, report, signal } = options
  const { data_dir } = config.server
  const dir = embeddedFolder(config)
  const passwordFile = path.join(data_dir, 'postgres-password')
  if (!makes && !(existsSync(passwordFile) && existsSync(path.join(dir, 'data')))) throw noDatabase(config)
  const password = generatedOnce(passwordFile, random)
  const running = options.join === true ? await joinEmbedded(dir, password) : undefined
  const server = running ?? (await startEmbedded({ dir, password, report, signal }))
  try {
    const superuserUrl = server.url('postgres', password, CONTROL)
    const embedded = { url: server.superuserUrl, dataFolder: path.resolve(dir, 'data'), password }
    const opened = await unlessAborted(signal, embeddedDatabases(server, superuserUrl, options))
    return { ...opened, embedded }
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function embeddedDatabases(
  server: EmbeddedServer,
  superuserUrl: string,
  options: OpenOptions,
): Promise<Omit<Opened, 'embedded'>> {
  const { config, makes, secrets } = options
  const seen = await seeEmbedded(superuserUrl, options)
  const login = (age: Standing['secret']) => ({
    name: CONTROL,
    password: secrets.derive('database-role', CONTROL, age),
  })
  const controlUrl = (age: Standing['secret']) => server.url(CONTROL, login(age).password, CONTROL)
  if (makes && seen.standing?.secret !== 'current') {
    const databases = [{ name: CONTROL, owner: CONTROL }]
    await provision(server.superuserUrl, { roles: [login('current')], databases })
  }
  // On its own server there is no other installation, so the names need no prefix.
  const names = { ...builtInNames(CONTROL), anonymous: 'anon', signedIn: 'authenticated' }
  const url = controlUrl(makes ? 'current' : (seen.standing?.secret ?? 'current'))
  const standing = await settle(url, seen, options)
  const built = await ensureBuiltIn({ ...options, names, standing, provisionUrl: server.superuserUrl })
  if (makes) await keepSecret(url, standing, secrets)
  return {
    controlUrl: url,
    pooler: undefined,
    describes: `embedded PostgreSQL ${server.version.split('.')[0]} in ${config.server.data_dir}`,
    ...builtInDatabases(built, names, server.url),
    advice: undefined,
    separateAudit: () => separate(superuserUrl, names, standing),
    died: server.died,
    stop: (within) => server.stop(within),
  }
}

const separate = (url: string, { auditOwner: role }: BuiltInNames, { id: installation }: Standing) =>
  separateAuditOwner(url, { role, installation })

/** Name of the embedded server's control database and of its owner. */
export const CONTROL = 'gatehouse'

/** As the superuser: the password of the control role may not be known yet. */
async function seeEmbedded(url: string, options: OpenOptions): Promise<Seen> {
  try {
    return await withClient(url, (client) => see(client, options))
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== UNKNOWN_DATABASE) throw error
    return { database: CONTROL, standing: undefined, isCopy: false }
  }
}

const UNKNOWN_DATABASE = '3D000'

/** Checks which installation the database belongs to, and that this version knows its schema. Changes nothing. */
async function see(client: pg.Client, asking: Asking): Promise<Seen> {
  await expectNoPooler(client)
  const seen = await seeInstallation(client, asking)
  await pendingMigrations((text) => client.query(text))
  return seen
}

/**
 * Before a secret or key is generated: refuses a control database of another installation or of a newer version. Of two processes that
 * generate a secret at the same time, `establishInstallation` refuses the second.
 */
export async function expectOwnDatabase(config: Config, asking: Asking): Promise<void> {
  await onControl(config, (url) => withClient(url, (client) => see(client, asking)))
}

/** On the operator's server: databases next to the control database, if its role may create them. */
async function openServer(options: OpenOptions, controlUrl: string): Promise<Opened> {
  const { config, makes, secrets } = options
  const { seen, version, mayProvision } = await withClient(controlUrl, (client) => lookAt(client, options))
  const standing = await settle(controlUrl, seen, options)
  const names = builtInNames(seen.database)
  const provisionUrl = mayProvision ? controlUrl : undefined
  const built = await ensureBuiltIn({ ...options, names, standing, provisionUrl })
  if (makes) await keepSecret(controlUrl, standing, secrets)
  const pooler = await openPooler(options, controlUrl, standing)
  return {
    controlUrl,
    pooler,
    embedded: undefined,
    describes: `PostgreSQL ${version} at ${new URL(controlUrl).host || 'a socket'}`,
    ...builtInDatabases(built, names, (role, password, database) =>
      urlFor(controlUrl, role, password, database),
    ),
    advice: mayProvision ? undefined : adviceFor(config),
    separateAudit: async () => {
      if (mayProvision) await separate(controlUrl, names, standing)
    },
    died: new Promise<never>(() => {}),
    stop: async () => {},
  }
}

/** The pooler of `database.url`, when `database.direct_url` is set. */
async function openPooler(
  { config, makes }: OpenOptions,
  controlUrl: string,
  { id }: Standing,
): Promise<PoolerAddress | undefined> {
  const { url, direct_url } = config.database
  if (url === undefined || direct_url === undefined || url === direct_url) return undefined
  if (makes) await withClient(controlUrl, settleRole)
  return namedBy('database.url (DATABASE_URL)', url, () => lookThroughPooler(url, id))
}

/** The installation of this database: the recorded one, or a new one. A copy becomes an installation of its own. */
async function settle(url: string, seen: Seen, options: OpenOptions): Promise<Standing> {
  const { config, makes, random, secrets } = options
  const now = { random, now: systemClock() }
  if (seen.standing === undefined) {
    if (!makes || !config.database.migrate) throw notEstablished(seen.database)
    return withClient(url, (client) => establishInstallation(client, options, now))
  }
  if (!seen.isCopy) return seen.standing
  return withClient(url, (client) => recordCopy(client, secrets, now))
}

async function keepSecret(url: string, standing: Standing, secrets: Secrets): Promise<void> {
  if (standing.secret === 'current') return
  await withClient(url, (client) => recordSecret(client, standing.id, secrets))
}

async function lookAt(client: pg.Client, options: OpenOptions) {
  const { rows } = await client.query<{ version: string; may: boolean }>(
    `select current_setting('server_version') as version, rolsuper or (rolcreatedb and rolcreaterole) as may
       from pg_roles where rolname = current_user`,
  )
  const seen = await see(client, options)
  return { seen, version: rows[0]?.version ?? '', mayProvision: rows[0]?.may ?? false }
}

/** A short-lived connection to the control database. */
const withClient = <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> =>
  onConnection({ url, name: 'start' }, work)

function urlFor(controlUrl: string, role: string, password: string, database: string): string {
  const url = new URL(controlUrl)
  url.username = encodeURIComponent(role)
  url.password = encodeURIComponent(password)
  url.pathname = `/${encodeURIComponent(database)}`
  return url.href
}
