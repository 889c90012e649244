import type pg from 'pg'
import type { EmbeddedServer } from '#kernel/db/embedded.ts'
import { removeSettings } from '#kernel/db/given-settings.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { redactText } from '#kernel/redact.ts'
import { dropFormerState } from '../former-state.ts'

/**
 * Rows that must not live a second time: proofs of callers that may have been revoked since, mails and events that have been sent, jobs that
 * ran while the archive was made. By table, since an older archive may lack one, or a column.
 */
const FORGOTTEN: readonly (readonly [table: string, statement: string])[] = [
  ['service.session', 'delete from service.session'],
  ['service.verification', 'delete from service.verification'],
  ['service.device_authorization', 'delete from service.device_authorization'],
  ['service.trusted_device', 'delete from service.trusted_device'],
  // It proves an address, as a link does. Who is invited still is.
  [
    'service.invitation',
    `do $$ begin update service.invitation set secret_hash = null; exception when undefined_column then null; end $$`,
  ],
  // The original may go on to sign with them.
  ['service.jwt_key', 'select service.retire_jwt_keys()'],
  // Runs of before the restore are not missed.
  ['service.backup_schedule', 'delete from service.backup_schedule'],
  ['service.process_lease', 'delete from service.process_lease'],
  [
    'service.webhook_delivery',
    `update service.webhook_delivery set status = 'expired', next_attempt_at = null where status in ('pending', 'retrying')`,
  ],
  [
    'service_jobs.job',
    `delete from service_jobs.job where state < 'completed' and name in ('send-mail', 'answer-mail-request', 'run-backup')`,
  ],
]

export async function forget(client: pg.Client): Promise<void> {
  for (const [table, statement] of FORGOTTEN) {
    const { rows } = await client.query<{ exists: boolean }>('select to_regclass($1) is not null as exists', [
      table,
    ])
    if (rows[0]?.exists === true) await client.query(statement)
  }
}

/**
 * In the databases of clients. Their callers may have given settings to databases and roles, which would hold for the superuser too, so these
 * are removed before a connection is made. Returns a sentence for each, and for each database that the rest failed in: the others do not
 * depend on it.
 */
export async function forgetOfClients(
  { url, superuserUrl }: EmbeddedServer,
  password: string,
): Promise<readonly string[]> {
  const { databases, warnings } = await onConnection(
    { url: superuserUrl, name: 'restore' },
    async (client) => {
      const { rows } = await client.query<{ roles: string[]; databases: string[] }>(
        `select array(select rolname::text from pg_roles where not rolsuper) as roles,
              array(select datname::text from pg_database where datallowconn and datname <> 'template1') as databases`,
      )
      const { roles, databases } = rows[0] ?? { roles: [], databases: [] }
      return { databases, warnings: await removeSettings(client, { roles, databases }) }
    },
  )
  const failed: string[] = []
  for (const name of databases)
    await forgetFormerState(url('postgres', password, name)).catch((error: unknown) => {
      const why = redactText(error instanceof Error ? error.message : String(error))
      failed.push(`The idempotency keys in database ${name} were not deleted: ${why}`)
    })
  return [...warnings, ...failed]
}

/** The superuser must run nothing of the client's with all rights. Dropping a table calls no triggers and rules. */
async function forgetFormerState(url: string): Promise<void> {
  const options = encodeURIComponent('-c event_triggers=off')
  await onConnection(
    { url: `${url}?options=${options}`, name: 'restore', deadline: 600_000 },
    dropFormerState,
  )
}
