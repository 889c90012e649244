import type pg from 'pg'
import { adviceFor, builtInDatabases, builtInNames, ensureBuiltIn } from '#kernel/db/built-in-databases.ts'
import type { Standing } from '#kernel/db/installation.ts'
import { lookThroughPooler, settleRole } from '#kernel/db/pooler.ts'
import type { PoolerAddress } from '#kernel/db/session-settings.ts'
import { namedBy } from '#kernel/db/unusable-database.ts'
import {
  inspectControl,
  type OpenedServer,
  type OpenOptions,
  recordCurrentSecret,
  separateAudit,
  settleInstallation,
  withClient,
} from './control-database.ts'

/** On the operator's server: databases next to the control database, if its role may create them. */
export async function openServer(options: OpenOptions, controlUrl: string): Promise<OpenedServer> {
  const { config, createsMissing, secrets } = options
  const { seen, version, mayProvision } = await withClient(controlUrl, (client) => lookAt(client, options))
  const standing = await settleInstallation(controlUrl, seen, options)
  const names = builtInNames(seen.database)
  const provisionUrl = mayProvision ? controlUrl : undefined
  const url = (role: string, password: string, database: string) =>
    urlFor(controlUrl, role, password, database)
  const built = await ensureBuiltIn({ ...options, names, standing, url, provisionUrl })
  if (createsMissing) await recordCurrentSecret(controlUrl, standing, secrets)
  const pooler = await openPooler(options, controlUrl, standing)
  return {
    controlUrl,
    pooler,
    embedded: undefined,
    describes: `PostgreSQL ${version} at ${new URL(controlUrl).host || 'a socket'}`,
    ...builtInDatabases(built, names),
    advice: mayProvision ? undefined : adviceFor(config),
    separateAudit: async () => {
      if (mayProvision) await separateAudit(controlUrl, names, standing)
    },
    died: new Promise<never>(() => {}),
    stop: async () => {},
  }
}

async function lookAt(client: pg.Client, options: OpenOptions) {
  const { rows } = await client.query<{ version: string; may: boolean }>(
    `select current_setting('server_version') as version, rolsuper or (rolcreatedb and rolcreaterole) as may
       from pg_roles where rolname = current_user`,
  )
  const seen = await inspectControl(client, options)
  return { seen, version: rows[0]?.version ?? '', mayProvision: rows[0]?.may ?? false }
}

/** The pooler of `database.url`, when `database.direct_url` is set. */
async function openPooler(
  { config, createsMissing }: OpenOptions,
  controlUrl: string,
  { id }: Standing,
): Promise<PoolerAddress | undefined> {
  const { url, direct_url } = config.database
  if (url === undefined || direct_url === undefined || url === direct_url) return undefined
  if (createsMissing) await withClient(controlUrl, settleRole)
  return namedBy('database.url (DATABASE_URL)', url, () => lookThroughPooler(url, id))
}

function urlFor(controlUrl: string, role: string, password: string, database: string): string {
  const url = new URL(controlUrl)
  url.username = encodeURIComponent(role)
  url.password = encodeURIComponent(password)
  url.pathname = `/${encodeURIComponent(database)}`
  return url.href
}
