import type pg from 'pg'
import { forget } from '#gateway/backups/archive/forget.ts'
import type { EmbeddedSource } from '#gateway/backups/sources.ts'
import { systemClock } from '#kernel/clock.ts'
import type { Config } from '#kernel/config/config.ts'
import { lostControl } from '#kernel/data-folder.ts'
import { separateAuditOwner } from '#kernel/db/audit-owner.ts'
import type { BuiltInDatabases, BuiltInNames } from '#kernel/db/built-in-databases.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import {
  establishInstallation,
  type InstallationCheck,
  type InstallationState,
  notEstablished,
  recordCopy,
  recordSecret,
  type Standing,
  seeInstallation,
} from '#kernel/db/installation.ts'
import { pendingMigrations } from '#kernel/db/migrate.ts'
import { expectNoPooler } from '#kernel/db/pooler.ts'
import type { PoolerAddress } from '#kernel/db/session-settings.ts'
import { InstallationError } from '#kernel/installation-secrets.ts'
import type { Random } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'

export type OpenOptions = InstallationCheck & {
  readonly config: Config
  readonly random: Random
  readonly report: (step: string) => void
  /** Aborts the start. */
  readonly signal?: AbortSignal | undefined
  /** Uses the embedded server that another process of the service runs already, instead of failing. */
  readonly join?: boolean
  /** True for `serve` and `migrate`, which create what is missing. Every other command uses what exists and changes nothing. */
  readonly createsMissing: boolean
}

/** A server with the databases that the service runs on, before they are migrated. */
export type OpenedServer = BuiltInDatabases & {
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
  readonly died: Promise<{ readonly log: string }>
  /** Gives the audit trail its own owner, if roles can be created. */
  separateAudit(): Promise<void>
  /** Kills the server when it has not ended within that many milliseconds. */
  stop(within?: number): Promise<void>
}

/** A short-lived connection to the control database. */
export const withClient = <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> =>
  onConnection({ url, name: 'start' }, work)

/**
 * Checks which installation the database belongs to, that an empty one does not take the place of a lost one, and that this version knows its
 * schema. Changes nothing.
 */
export async function inspectControl(
  client: pg.Client,
  { config, ...asking }: InstallationCheck & Pick<OpenOptions, 'config'>,
): Promise<InstallationState> {
  await expectNoPooler(client)
  const lost = lostControl(config)
  const seen = await seeInstallation(client, asking)
  if (seen.standing === undefined && lost !== undefined)
    throw new InstallationError(`The control database ${seen.database} (DATABASE_URL) ${lost}`)
  await pendingMigrations((text) => client.query(text))
  return seen
}

/**
 * The installation of this database: the recorded one, or a new one. A copy becomes an installation of its own, without what both would use
 * or send: a session that the original ends would live on here.
 */
export async function settleInstallation(
  url: string,
  seen: InstallationState,
  options: OpenOptions,
): Promise<Standing> {
  const { config, createsMissing, random, secrets } = options
  const now = { random, now: systemClock() }
  if (seen.standing === undefined) {
    if (!createsMissing || !config.database.migrate) throw notEstablished(seen.database)
    return withClient(url, (client) => establishInstallation(client, options, now))
  }
  if (!seen.isCopy) return seen.standing
  return onConnection({ url, name: 'start', deadline: FORGETTING }, async (client) => {
    // First: a copy that was recorded is never one again.
    await forget(client)
    return recordCopy(client, secrets, now)
  })
}

/** Milliseconds for each statement: there may be millions of sessions. */
const FORGETTING = 600_000

export async function recordCurrentSecret(url: string, standing: Standing, secrets: Secrets): Promise<void> {
  if (standing.secret === 'current') return
  await withClient(url, (client) => recordSecret(client, standing.id, secrets))
}

export const separateAudit = (
  url: string,
  { auditOwner: role }: BuiltInNames,
  { id: installation }: Standing,
): Promise<void> => separateAuditOwner(url, { role, installation })
