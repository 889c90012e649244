import pg from 'pg'
import type { Standing } from '#kernel/db/installation.ts'
import { markOf } from '#kernel/db/provision.ts'
import type { Secrets } from '#kernel/secrets.ts'

/** The archive that was restored, as the row of its job gets it. */
export type RestoredFile = {
  readonly job: string
  /** The file, or s3://bucket/key. */
  readonly location: string
  readonly size: number
  readonly sha256: string
}

type RestoredInstallation = {
  readonly standing: Standing
  readonly secrets: Secrets
  readonly file: RestoredFile
}

/**
 * Makes the restored database an installation of its own, in one transaction: the original may still live, with the same jobs, and their files are
 * its. The archive's own job, which ran while it was made, becomes the completed backup that it is.
 */
export async function becomeOwnInstallation(
  client: pg.Client,
  { standing, secrets, file }: RestoredInstallation,
): Promise<void> {
  const { rows } = await client.query<{ id: string }>('select uuidv7()::text as id')
  const id = rows[0]?.id ?? ''
  const { job, location, size, sha256 } = file
  await client.query('begin')
  // An older archive lacks these columns, and the next start adds the rest of the migration.
  await client.query(`
    alter table service.backup_job add column if not exists installation_id uuid;
    update service.backup_job set installation_id = '${standing.id}' where installation_id is null;
    alter table service.installation add column if not exists restored_backup uuid`)
  await client.query('update service.installation set id = $1, secret_check = $2, restored_backup = $3', [
    id,
    secrets.derive('installation', id, standing.secret),
    job,
  ])
  await client.query(
    `update service.backup_job set status = 'completed', location = $2, size_bytes = $3, sha256 = $4, progress_pct = 100,
        progress_stage = 'done', error_message = null, completed_at = clock_timestamp(), lease_until = null where id = $1`,
    [job, location, size, sha256],
  )
  await mark(client, standing.id, id)
  await client.query('commit')
}

/** The roles and databases of the installation carry its id. */
async function mark(client: pg.Client, from: string, to: string): Promise<void> {
  const { rows } = await client.query<{ kind: string; name: string }>(
    `select 'role' as kind, rolname as name from pg_roles where shobj_description(oid, 'pg_authid') = $1
     union all
     select 'database', datname from pg_database where shobj_description(oid, 'pg_database') = $1`,
    [markOf(from)],
  )
  for (const { kind, name } of rows)
    await client.query(`comment on ${kind} ${pg.escapeIdentifier(name)} is ${pg.escapeLiteral(markOf(to))}`)
}
