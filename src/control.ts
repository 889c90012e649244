import path from 'node:path'
import pg from 'pg'
import type { Config } from '#kernel/config/config.ts'
import { joinEmbedded } from '#kernel/db/embedded/join.ts'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import { migrate } from '#kernel/db/migrate.ts'
import { type Provision, provision } from '#kernel/db/provision.ts'
import { systemSession } from '#kernel/db/session.ts'
import { generatedOnce } from '#kernel/installation.ts'
import type { Random } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'

/** The databases that the service runs on, made ready once for all of its processes. */
export type Databases = {
  readonly controlUrl: string
  /** For people: `embedded PostgreSQL 18.4 in ./data`. */
  readonly describes: string
  /** Clients that exist without being configured, by name. */
  readonly builtIn: Readonly<Record<string, string>>
  /** The log and audit tables: their owner's URL, and that of a role which may only read them. */
  readonly logging: { readonly ownerUrl: string; readonly readerUrl: string } | undefined
  /** What the operator has to do before everything works. */
  readonly advice: string | undefined
  readonly died: Promise<{ readonly log: string }>
  stop(): Promise<void>
}

export type OpenOptions = {
  readonly config: Config
  readonly secrets: Secrets
  readonly random: Random
  readonly report: (step: string) => void
  /** Uses an embedded server that another process of ours runs already, instead of failing. */
  readonly join?: boolean
}

/** The role that may only read what is logged. */
export const READER = 'gatehouse_logging_reader'

/** Who writes the log and audit tables: what the operator configured, else what is built in. */
export const loggingOwner = (config: Config, { logging }: Pick<Databases, 'logging'>): string | undefined =>
  config.clients[config.gateway.logging_client]?.url ?? logging?.ownerUrl

const ROLES = { default: 'gatehouse_default', logging: 'gatehouse_logging', reader: READER }

/** Starts the embedded server when no other is named, makes the databases and roles that are missing, and migrates. */
export async function openDatabases(options: OpenOptions): Promise<Databases> {
  const { config, report } = options
  const opened =
    config.database.url === undefined
      ? await openEmbedded(options)
      : await openServer(options, config.database.url)
  if (config.database.migrate) {
    report('migrate')
    await migrate(opened.controlUrl)
  }
  return opened
}

async function openEmbedded(options: OpenOptions): Promise<Databases> {
  const { config, random, report } = options
  const { data_dir } = config.server
  const dir = path.join(data_dir, 'postgres')
  const password = generatedOnce(path.join(data_dir, 'postgres-password'), random)
  const running = options.join === true ? await joinEmbedded(dir, password) : undefined
  const server = running ?? (await startEmbedded({ dir, password, report }))
  try {
    if (running === undefined) await provisionEmbedded(server, options)
    return embeddedDatabases(server, options)
  } catch (error) {
    await server.stop()
    throw error
  }
}

async function provisionEmbedded(server: EmbeddedServer, { secrets }: OpenOptions): Promise<void> {
  const password = (role: string) => secrets.derive('database-role', role)
  const wanted = ownDatabases(password)
  await provision(server.superuserUrl, {
    roles: [{ name: CONTROL, password: password(CONTROL) }, ...wanted.roles],
    databases: [{ name: CONTROL, owner: CONTROL }, ...wanted.databases],
  })
}

function embeddedDatabases(server: EmbeddedServer, { config, secrets }: OpenOptions): Databases {
  const url = (role: string, database: string) =>
    server.url(role, secrets.derive('database-role', role), database)
  return {
    controlUrl: url(CONTROL, CONTROL),
    describes: `embedded PostgreSQL ${server.version.split('.')[0]} in ${config.server.data_dir}`,
    builtIn: builtIn(config, url(ROLES.default, ROLES.default)),
    logging: { ownerUrl: url(ROLES.logging, ROLES.logging), readerUrl: url(ROLES.reader, ROLES.logging) },
    advice: undefined,
    died: server.died,
    stop: () => server.stop(),
  }
}

/** Name of the embedded server's control database and of its owner. */
const CONTROL = 'gatehouse'

/** On a server of the operator's: databases beside the control database, where its role may make them. */
async function openServer({ config, secrets, report }: OpenOptions, controlUrl: string): Promise<Databases> {
  const password = (role: string) => secrets.derive('database-role', role)
  const { version, mayProvision } = await lookAt(controlUrl)
  const shared = {
    controlUrl,
    describes: `PostgreSQL ${version} at ${new URL(controlUrl).host || 'a socket'}`,
    died: new Promise<never>(() => {}),
    stop: async () => {},
  }
  if (!mayProvision) {
    return { ...shared, builtIn: {}, logging: undefined, advice: adviceFor(config) }
  }
  report('provision')
  await provision(controlUrl, ownDatabases(password))
  const url = (role: string, database: string) => urlFor(controlUrl, role, password(role), database)
  return {
    ...shared,
    builtIn: builtIn(config, url(ROLES.default, ROLES.default)),
    logging: { ownerUrl: url(ROLES.logging, ROLES.logging), readerUrl: url(ROLES.reader, ROLES.logging) },
    advice: undefined,
  }
}

function ownDatabases(password: (role: string) => string): Provision {
  return {
    roles: Object.values(ROLES).map((name) => ({ name, password: password(name) })),
    databases: [
      { name: ROLES.default, owner: ROLES.default },
      { name: ROLES.logging, owner: ROLES.logging },
    ],
  }
}

/** Client `default` is there only as long as nobody has configured clients of their own. */
const builtIn = (config: Config, url: string): Record<string, string> =>
  Object.keys(config.clients).length === 0 ? { default: url } : {}

function adviceFor(config: Config): string | undefined {
  const missing = ['default', config.gateway.logging_client].filter(
    (name) => config.clients[name] === undefined,
  )
  if (missing.length === 0) return undefined
  const entries = missing.map(
    (name) => `  ${name}:\n    url: postgres://ROLE@HOST/DATABASE   # with its password`,
  )
  return (
    'The role of database.url may not create databases and roles (CREATEDB, CREATEROLE). Give it both, or write into ' +
    `gatehouse.yaml:\nclients:\n${entries.join('\n')}\nUntil then signing in works, and data, pipelines and management answer 503.`
  )
}

async function lookAt(url: string): Promise<{ version: string; mayProvision: boolean }> {
  const client = new pg.Client({ ...systemSession(url), connectionTimeoutMillis: 10_000 })
  await client.connect()
  try {
    const { rows } = await client.query<{ version: string; may: boolean }>(
      `select current_setting('server_version') as version, rolsuper or (rolcreatedb and rolcreaterole) as may
         from pg_roles where rolname = current_user`,
    )
    return { version: rows[0]?.version ?? '', mayProvision: rows[0]?.may ?? false }
  } finally {
    await client.end()
  }
}

function urlFor(controlUrl: string, role: string, password: string, database: string): string {
  const url = new URL(controlUrl)
  url.username = encodeURIComponent(role)
  url.password = encodeURIComponent(password)
  url.pathname = `/${encodeURIComponent(database)}`
  return url.href
}
