import { openAddress } from '#databases/clients/addresses.ts'
import { changeProblems } from '#databases/clients/changes.ts'
import { driverFor } from '#databases/clients/client.ts'
import { type ConfiguredClient, createConfiguredClients } from '#databases/clients/configured.ts'
import { listProtected } from '#databases/clients/protection.ts'
import { type ClientRow, listClients } from '#databases/clients/store.ts'
import { requireAbility } from '#databases/drivers/abilities.ts'
import type { SqlRequest } from '#databases/drivers/driver.ts'
import { findUnprotectedTables } from '#databases/drivers/postgres/roles/unprotected-tables.ts'
import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import type { Config } from '#kernel/config/config.ts'
import { issuerWarnings } from '#kernel/config/issuer-warnings.ts'
import { CLIENT_LIMITS } from '#kernel/config/sections/database.ts'
import { mailWarnings, passkeyWarnings, proxyWarnings, usesPasskeys } from '#kernel/config/warnings.ts'
import { connectOnce, type Db } from '#kernel/db/connect.ts'
import { pendingMigrations } from '#kernel/db/migrate.ts'
import { readOnly } from '#kernel/db/session-settings.ts'
import { loggingOwner, type ServiceDatabases } from '#startup/open-databases.ts'
import { probeClient } from './client-probe.ts'
import { type Context, loadPipelines } from './context.ts'
import { defaultKeyFindings } from './default-key-check.ts'
import type { Finding } from './finding.ts'
import { hookFindings } from './hook-checks.ts'
import { issuerFindings } from './issuer-checks.ts'
import { judge } from './judged-checks.ts'
import { jwtKeyFindings } from './jwt-key-checks.ts'
import { clientNames, configuredNames } from './named-client.ts'
import { outboundFinding } from './outbound-checks.ts'
import { providerFindings } from './provider-checks.ts'
import { localProblems, pipelineProblems, startProblems } from './start-checks.ts'
import { sentenceOf } from './terminal.ts'
import { webhookFindings } from './webhook-checks.ts'

export type DoctorContext = Pick<Context, 'config' | 'secrets' | 'environment' | 'log'>
export type DoctorDatabases = Pick<
  ServiceDatabases,
  'controlUrl' | 'builtIn' | 'logging' | 'describes' | 'advice'
> &
  Partial<Pick<ServiceDatabases, 'callerRoles'>>

/** Gives the databases to the checks, and releases them. */
type Opening = <T>(work: (databases: DoctorDatabases) => Promise<T>) => Promise<T>

/** A part of the checks that has begun. */
type Part = { readonly subject: string; readonly found: Promise<readonly Finding[]> }

/** Begins all checks, of the command and of the running service, which knows that its port is its own. */
export const beginChecks = (context: DoctorContext, open: Opening, isServing: boolean): readonly Part[] => [
  { subject: 'configuration', found: settings(context, isServing) },
  { subject: 'database', found: database(context, open) },
  { subject: 'providers', found: providerFindings(context.config) },
  { subject: 'issuers', found: issuerFindings(context.config) },
  { subject: 'hooks', found: hookFindings(context.config) },
]

async function settings(context: DoctorContext, isServing: boolean): Promise<readonly Finding[]> {
  const { config } = context
  return [
    ...(await configuration(config, isServing)),
    ...mailWarnings(config).map((says) => ({ subject: 'mail', ok: false, says })),
    ...proxyWarnings(config).map((says) => ({ subject: 'proxy', ok: false, says })),
    ...passkeys(context),
    ...issuerWarnings(config).map((says) => ({ subject: 'issuers', ok: false, says })),
    outboundFinding(config),
    ...pipelines(context),
  ]
}

/** Problems that `serve` refuses before it opens a database. */
async function configuration(config: Config, isServing: boolean): Promise<Finding[]> {
  const subject = 'configuration'
  const problems = isServing ? await startProblems(config, { offline: true }) : await localProblems(config)
  if (problems.length > 0) return problems.map((says) => ({ subject, ok: false, says }))
  return [{ subject, ok: true, says: 'is valid' }]
}

/** Their problems are those of the configuration. */
function pipelines({ config }: DoctorContext): Finding[] {
  if (pipelineProblems(config).length > 0) return []
  const { file, pipelines } = loadPipelines(config)
  if (file === undefined) return []
  return [{ subject: 'pipelines', ok: true, says: `${file.name} defines ${pipelines.size}` }]
}

/** A problem only where passkeys are wanted. */
const passkeys = ({ config }: DoctorContext): Finding[] =>
  passkeyWarnings(config).map((says) => ({ subject: 'passkeys', ok: !usesPasskeys(config), says }))

async function database(context: DoctorContext, open: Opening): Promise<Finding[]> {
  try {
    return await open(async (databases) => [
      ...(await control(context, databases)),
      ...(await withMigrated(databases.controlUrl, webhookFindings)),
      ...(await withMigrated(databases.controlUrl, (db) => jwtKeyFindings(context, db))),
      ...(await defaultKey(context, databases)),
      ...(await clients(context, databases)),
      ...(await registered(context, databases)),
      ...(await schedules(context, databases)),
    ])
  } catch (error) {
    return [{ subject: 'database', ok: false, says: sentenceOf(error) }]
  }
}

async function defaultKey(
  { config }: DoctorContext,
  { builtIn, controlUrl }: DoctorDatabases,
): Promise<Finding[]> {
  if (builtIn.default === undefined) return []
  return withMigrated(controlUrl, (db) => defaultKeyFindings(config, db))
}

async function control(
  { config }: DoctorContext,
  { controlUrl, describes }: DoctorDatabases,
): Promise<Finding[]> {
  const checked = (await judge(config, controlUrl)).flatMap(({ check: { name, fine }, problems }) =>
    problems.length === 0
      ? [{ subject: name.replace('_', ' '), ok: true, says: fine }]
      : problems.map((says) => ({ subject: name.replace('_', ' '), ok: false, says })),
  )
  return [{ subject: 'database', ok: true, says: describes }, ...checked]
}

async function clients({ config, log }: DoctorContext, databases: DoctorDatabases): Promise<Finding[]> {
  const { builtIn, callerRoles, logging, advice } = databases
  const urls = { ...builtIn, ...urlsOf(config) }
  const addressesOf = (name: string) => ({
    setting: `clients.${name}`,
    url: urls[name],
    direct_url: config.clients[name]?.direct_url,
  })
  const configured = createConfiguredClients({
    config,
    builtIn,
    callerRoles,
    loggingReaderUrl: logging?.readerUrl,
    log,
  })
  const registry = await asDecided(configured, databases)
  const reached = await Promise.all(
    [...registry.values()].map(async (client): Promise<readonly Finding[]> => {
      const { name, driver } = client
      const subject = `client ${name}`
      try {
        const says = await probeClient(driver, addressesOf(name))
        // Fails if the role for SQL is a member of the client's own role.
        if (config.clients[name]?.sql_role.name !== undefined) await requireAbility(driver, 'sql')(ANY_SQL)
        const problems = await changeProblems(client)
        return [{ subject, ok: true, says }, ...problems.map((problem) => ({ subject, ...problem }))]
      } catch (error) {
        return [{ subject, ok: false, says: sentenceOf(error) }]
      }
    }),
  )
  const opened = new Set([...configured.values(), ...registry.values()])
  await Promise.all([...opened].map(({ driver }) => driver.close()))
  const found = [...reached.flat(), ...(await policies(urls, registry))]
  if (advice !== undefined) found.push({ subject: 'clients', ok: false, says: advice })
  if (loggingOwner(config, databases) === undefined) {
    found.push({ subject: 'audit', ok: false, says: 'no logging client, so management returns 503' })
  }
  return found
}

/** As callers find them: row-level security of the built-in client may have been switched on over HTTP. */
async function asDecided(
  configured: ReadonlyMap<string, ConfiguredClient>,
  { controlUrl }: DoctorDatabases,
): Promise<ReadonlyMap<string, ConfiguredClient>> {
  const names = await withMigrated(controlUrl, async (db) => [...(await listProtected(db))])
  return new Map(
    [...configured].map(([name, client]) => [
      name,
      (names.includes(name) ? client.protect?.() : undefined) ?? client,
    ]),
  )
}

/** Without pending migrations; else nothing is found, and `control` has reported them. */
async function withMigrated<T>(controlUrl: string, find: (db: Db) => Promise<readonly T[]>): Promise<T[]> {
  const control = connectOnce(readOnly(controlUrl))
  try {
    if ((await pendingMigrations((text) => control.pool.query(text))).length > 0) return []
    return [...(await find(control.db))]
  } finally {
    await control.close()
  }
}

/** Checks clients that were registered over HTTP. A configured client replaces a registered one of the same name. */
async function registered(context: DoctorContext, { controlUrl }: DoctorDatabases): Promise<Finding[]> {
  return withMigrated(controlUrl, async (db) => {
    const rows = await listClients(db)
    const unconfigured = rows.filter(
      ({ clientName, isActive }) => isActive && !(clientName in context.config.clients),
    )
    return Promise.all(unconfigured.map((row) => reachOf(context, row)))
  })
}

/** A client may be registered after the start, so `config check` cannot tell whether that of a schedule exists. */
async function schedules(context: DoctorContext, databases: DoctorDatabases): Promise<Finding[]> {
  const wanted = Object.entries(context.config.backups.schedules)
  if (wanted.length === 0) return []
  const configured = configuredNames(context, databases)
  return withMigrated(databases.controlUrl, async (db) => {
    const names = await clientNames({ db }, configured)
    const list = [...names].sort().join(', ')
    return wanted.map(([name, { client }]) => ({
      subject: `backup schedule ${name}`,
      ok: names.has(client),
      says: names.has(client)
        ? `backs up client ${client}`
        : `there is no client ${client}. Existing clients: ${list}`,
    }))
  })
}

async function reachOf(
  { config, secrets, environment, log }: DoctorContext,
  row: ClientRow,
): Promise<Finding> {
  const subject = `client ${row.clientName}`
  const address = openAddress({ secrets }, environment, row)
  if (typeof address === 'string')
    return {
      subject,
      ok: false,
      says: `its address cannot be read here: PATCH /admin/clients with a new ${address}`,
    }
  const settings = { name: row.clientName, ...address, readOnly: true, ...CLIENT_LIMITS }
  const driver = driverFor({ config, log }, settings)
  try {
    return { subject, ok: true, says: await probeClient(driver, { setting: 'its address', ...address }) }
  } catch (error) {
    return { subject, ok: false, says: sentenceOf(error) }
  } finally {
    await driver.close()
  }
}

const urlsOf = ({ clients }: Config): Record<string, string> =>
  Object.fromEntries(
    Object.entries(clients).flatMap(([name, { url }]) => (url === undefined ? [] : [[name, url]])),
  )

const ANY_SQL: SqlRequest = {
  text: 'select 1',
  values: [],
  readOnly: true,
  schema: undefined,
  database: undefined,
  maxRows: 1,
  presence: ALWAYS_PRESENT,
}

/** Finds tables without row-level security in clients that rely on it. Skips unreachable clients, which `clients` has reported. */
async function policies(
  urls: Readonly<Record<string, string>>,
  registry: ReadonlyMap<string, ConfiguredClient>,
): Promise<readonly Finding[]> {
  const found = await Promise.all(
    [...registry.values()].map(async ({ name, rowLevelSecurity }) => {
      const url = urls[name]
      if (rowLevelSecurity === undefined || url === undefined) return []
      const tables = await findUnprotectedTables(url, rowLevelSecurity).catch(() => [])
      return tables.map((table) => ({
        subject: `client ${name}`,
        ok: false,
        says: `${table.name} ${table.why}`,
      }))
    }),
  )
  return found.flat()
}
