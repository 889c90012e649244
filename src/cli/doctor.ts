import { Command } from 'commander'
import { openAddress } from '#databases/clients/addresses.ts'
import { driverFor } from '#databases/clients/client.ts'
import { type ConfiguredClient, createConfiguredClients } from '#databases/clients/configured.ts'
import { type ClientRow, listClients } from '#databases/clients/store.ts'
import { requireAbility } from '#databases/drivers/abilities.ts'
import type { SqlRequest } from '#databases/drivers/driver.ts'
import { findUnprotectedTables } from '#databases/drivers/postgres/roles/unprotected-tables.ts'
import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import { isInS3 } from '#gateway/backups/location/location.ts'
import { requireBucket } from '#gateway/backups/location/s3-store.ts'
import { NOTED_DRIFT } from '#kernel/clock.ts'
import type { Config } from '#kernel/config/config.ts'
import { CLIENT_LIMITS } from '#kernel/config/sections/database.ts'
import { mailWarnings, passkeyWarnings, proxyWarnings, usesPasskeys } from '#kernel/config/warnings.ts'
import { connectOnce, type Db } from '#kernel/db/connect.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { pendingMigrations } from '#kernel/db/migrate.ts'
import { readOnly } from '#kernel/db/session-settings.ts'
import { Failure } from '#kernel/errors.ts'
import { NoInstallation } from '#kernel/installation-secrets.ts'
import { loggingOwner, type ServiceDatabases } from '../open-databases.ts'
import { type Context, contextOf, loadPipelines } from './context.ts'
import { defaultKeyFindings } from './default-key-check.ts'
import type { Finding } from './finding.ts'
import { clientNames, configuredNames } from './named-client.ts'
import { outboundFinding } from './outbound-checks.ts'
import { providerFindings } from './provider-checks.ts'
import { pipelineProblems } from './start-checks.ts'
import { sentenceOf, terminal } from './terminal.ts'
import { webhookFindings } from './webhook-checks.ts'
import { withDatabases } from './with-kernel.ts'

export function doctorCommand(): Command {
  return new Command('doctor')
    .description(
      'check configuration, database, migrations, clock, mail, outbound rules, webhooks, backups, clients and identity providers, and suggest fixes',
    )
    .option('--json', 'as JSON')
    .action(async ({ json }: { json?: boolean }, command: Command) => {
      const context = contextOf(command)
      const findings = [
        { subject: 'configuration', ok: true, says: 'is valid' },
        ...mail(context),
        ...proxyWarnings(context.config).map((says) => ({ subject: 'proxy', ok: false, says })),
        ...passkeys(context),
        outboundFinding(context.config),
        ...pipelines(context),
        ...(await database(context)),
        ...(await backups(context)),
        ...(await providerFindings(context.config)),
      ]
      if (json === true) terminal.say(JSON.stringify(findings, null, 2))
      else
        for (const { subject, ok, says } of findings)
          terminal.say(`${ok ? 'ok ' : 'BAD'}  ${subject}: ${says}`)
      if (!findings.every((finding) => finding.ok)) process.exitCode = 1
    })
}

function mail({ config }: Context): Finding[] {
  const problems = mailWarnings(config).map((says) => ({ subject: 'mail', ok: false, says }))
  if (problems.length > 0) return problems
  const says =
    config.mail.transport === 'smtp' ? 'is sent by smtp' : 'is written to the outbox (gatehouse mail list)'
  return [{ subject: 'mail', ok: true, says }]
}

function pipelines({ config }: Context): Finding[] {
  const subject = 'pipelines'
  const problems = pipelineProblems(config)
  if (problems.length > 0) return problems.map((says) => ({ subject, ok: false, says }))
  const { file, pipelines } = loadPipelines(config)
  if (file === undefined) return []
  return [{ subject, ok: true, says: `${file.name} defines ${pipelines.size}` }]
}

/** A problem only where passkeys are wanted. */
const passkeys = ({ config }: Context): Finding[] =>
  passkeyWarnings(config).map((says) => ({ subject: 'passkeys', ok: !usesPasskeys(config), says }))

/** Whether the bucket of the backups answers. */
async function backups({ config }: Context): Promise<Finding[]> {
  const subject = 'backups'
  const { location = '', s3 } = config.backups
  if (!isInS3(location)) return []
  try {
    await requireBucket(config)
    return [{ subject, ok: true, says: `${location} on ${s3.endpoint} answers` }]
  } catch (error) {
    const advice = error instanceof Failure ? `. ${error.hint}` : ''
    return [{ subject, ok: false, says: `${sentenceOf(error)}${advice}` }]
  }
}

async function database(context: Context): Promise<Finding[]> {
  try {
    return await withDatabases(context, async (databases) => [
      ...(await control(databases)),
      ...(await withMigrated(databases.controlUrl, webhookFindings)),
      ...(await defaultKey(context, databases)),
      ...(await clients(context, databases)),
      ...(await registered(context, databases)),
      ...(await schedules(context, databases)),
    ])
  } catch (error) {
    if (error instanceof NoInstallation) return [{ subject: 'database', ok: true, says: error.message }]
    return [{ subject: 'database', ok: false, says: error instanceof Error ? error.message : String(error) }]
  }
}

async function defaultKey(
  { config }: Context,
  { builtIn, controlUrl }: ServiceDatabases,
): Promise<Finding[]> {
  if (builtIn.default === undefined) return []
  return withMigrated(controlUrl, (db) => defaultKeyFindings(config, db))
}

async function control(databases: ServiceDatabases): Promise<Finding[]> {
  return onConnection({ url: databases.controlUrl, name: 'doctor' }, async (client) => {
    const pending = await pendingMigrations((text) => client.query(text))
    const before = Date.now()
    const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now')
    const drift = Math.abs((rows[0]?.now.getTime() ?? 0) - (before + Date.now()) / 2)
    return [
      { subject: 'database', ok: true, says: databases.describes },
      pending.length === 0
        ? { subject: 'migrations', ok: true, says: 'are applied' }
        : { subject: 'migrations', ok: false, says: `${pending.join(', ')} missing: run gatehouse migrate` },
      drift < NOTED_DRIFT
        ? { subject: 'clock', ok: true, says: 'agrees with the database' }
        : {
            subject: 'clock',
            ok: false,
            says: `differs from the database by ${Math.round(drift / 1_000)} s: use NTP on both`,
          },
    ]
  })
}

async function clients({ config, log }: Context, databases: ServiceDatabases): Promise<Finding[]> {
  const { builtIn, callerRoles, logging, advice } = databases
  const registry = createConfiguredClients({
    config,
    builtIn,
    callerRoles,
    loggingReaderUrl: logging?.readerUrl,
    log,
  })
  const reached = await Promise.all(
    [...registry.values()].map(async ({ name, driver }): Promise<Finding> => {
      try {
        const says = await probed(driver)
        // Fails if the role for SQL is a member of the client's own role.
        if (config.clients[name]?.sql_role.name !== undefined) await requireAbility(driver, 'sql')(ANY_SQL)
        return { subject: `client ${name}`, ok: true, says }
      } catch (error) {
        return {
          subject: `client ${name}`,
          ok: false,
          says: error instanceof Error ? error.message : String(error),
        }
      }
    }),
  )
  await Promise.all([...registry.values()].map(({ driver }) => driver.close()))
  reached.push(...(await policies({ ...builtIn, ...urlsOf(config) }, registry)))
  if (advice !== undefined) reached.push({ subject: 'clients', ok: false, says: advice })
  if (loggingOwner(config, databases) === undefined) {
    reached.push({ subject: 'audit', ok: false, says: 'no logging client, so management returns 503' })
  }
  return reached
}

/** Without pending migrations; else there are no findings, and `control` has reported them. */
async function withMigrated(
  controlUrl: string,
  find: (db: Db) => Promise<readonly Finding[]>,
): Promise<Finding[]> {
  const control = connectOnce(readOnly(controlUrl))
  try {
    if ((await pendingMigrations((text) => control.pool.query(text))).length > 0) return []
    return [...(await find(control.db))]
  } finally {
    await control.close()
  }
}

/** Checks clients that were registered over HTTP. A configured client replaces a registered one of the same name. */
async function registered(context: Context, { controlUrl }: ServiceDatabases): Promise<Finding[]> {
  return withMigrated(controlUrl, async (db) => {
    const rows = await listClients(db)
    const own = rows.filter(({ clientName, isActive }) => isActive && !(clientName in context.config.clients))
    return Promise.all(own.map((row) => reachOf(context, row)))
  })
}

/** A client may be registered after the start, so `config check` cannot tell whether that of a schedule exists. */
async function schedules(context: Context, databases: ServiceDatabases): Promise<Finding[]> {
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

async function reachOf({ config, secrets, environment, log }: Context, row: ClientRow): Promise<Finding> {
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
    return { subject, ok: true, says: await probed(driver) }
  } catch (error) {
    return { subject, ok: false, says: sentenceOf(error) }
  } finally {
    await driver.close()
  }
}

/** Throws if the database does not answer, or the direct URL is wrong. A pooler alone is enough for data. */
async function probed(driver: ConfiguredClient['driver']): Promise<string> {
  const version = `${driver.name} ${await driver.probe()}`
  try {
    await driver.requireSession?.()
    return version
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'direct_url_missing') throw error
    return `${version}, without backups: ${error.message}`
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
