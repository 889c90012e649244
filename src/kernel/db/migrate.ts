import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import { unlessAborted } from '../abort.ts'
import { onConnection } from './guarded-client.ts'
import { QUEUE_VERSION, queueVersion, type Run } from './queue-version.ts'
import { takeSessionLock, type Wait } from './session-lock.ts'

const FOLDER = new URL('../../../migrations/', import.meta.url)

/** The same in every process that migrates. */
const LOCK = { name: 'migration lock', key: '7462001' }

/** Longest time of one migration, milliseconds: an index on a large table takes minutes. */
const MAX_MILLISECONDS = 3_600_000

export class MigrationError extends Error {}

type Migration = { readonly name: string; readonly sql: string; readonly checksum: string }

export function migrations(): readonly Migration[] {
  return readdirSync(FOLDER)
    .filter((name) => /^\d{4}_.*\.sql$/.test(name))
    .sort()
    .map((name) => {
      const sql = readFileSync(new URL(name, FOLDER), 'utf8')
      return { name, sql, checksum: hash('sha256', sql) }
    })
}

/**
 * Brings the control database to this program's schema, each migration in a transaction of its own, one process at a
 * time. Returns the names that were applied. Throws when a newer version has used the database.
 */
export async function migrate(url: string, wait: Wait = {}): Promise<readonly string[]> {
  // When the connection ends, the server rolls the running transaction back.
  return onConnection({ url, name: 'migrate', deadline: MAX_MILLISECONDS }, async (client) => {
    await takeSessionLock(client, LOCK, wait)
    return await unlessAborted(wait.signal, bringUp(client))
  })
}

async function bringUp(client: pg.Client): Promise<readonly string[]> {
  const run: Run = (text) => client.query(text)
  // Before anything is created.
  await pendingMigrations(run)
  await prepare(client)
  const pending = await pendingWith(run)
  for (const migration of pending) await apply(client, migration)
  return pending.map(({ name }) => name)
}

/** The migrations that this database lacks. Changes nothing; throws when a newer version has used the database. */
export async function pendingMigrations(run: Run): Promise<readonly string[]> {
  const { rows } = await run(`select to_regclass('service.migration') is not null as present`)
  const [{ present } = { present: false }] = rows as { present: boolean }[] // the statement's own column
  await refuseNewerQueue(run)
  const missing = present ? await pendingWith(run) : migrations()
  return missing.map(({ name }) => name)
}

async function refuseNewerQueue(run: Run): Promise<void> {
  const version = await queueVersion(run)
  if (version === undefined || version <= QUEUE_VERSION) return
  throw new MigrationError(
    `The job queue of the database has schema ${version}, and this version of Gatehouse works with ${QUEUE_VERSION}: a newer version ` +
      'has used the database. Start that version, or restore a backup from before.',
  )
}

/**
 * Creates the schema and the two tables that are needed before the first migration: the installation is recorded first.
 * Only this role may connect to the database, so that the gateway is never a path to its hashes and secrets (gateway.md 2).
 */
export async function prepare(client: pg.Client): Promise<void> {
  await client.query(`
    create schema if not exists service;
    revoke all on schema service from public;
    create table if not exists service.migration (
      name text primary key,
      checksum text not null,
      applied_at timestamptz not null default now()
    );
    create table if not exists service.installation (
      singleton boolean primary key default true check (singleton),
      id uuid not null,
      secret_check text not null,
      control_database text not null,
      created_at timestamptz not null default now()
    );
    do $$
    begin
      execute format('revoke connect on database %I from public', current_database());
    exception when insufficient_privilege then
      raise warning 'not the owner of this database: run "revoke connect on database … from public" as its owner';
    end $$;
  `)
}

async function pendingWith(run: Run): Promise<readonly Migration[]> {
  const { rows } = await run('select name, checksum from service.migration')
  const known = migrations()
  const applied = new Map(
    (rows as { name: string; checksum: string }[]).map(({ name, checksum }) => [name, checksum]),
  ) // the statement's own columns
  for (const [name, checksum] of applied) {
    const mine = known.find((migration) => migration.name === name)
    if (mine === undefined) {
      throw new MigrationError(
        `The database has migration ${name}, which this version of Gatehouse does not know: a newer version has used the database. ` +
          'Start that version, or restore a backup from before.',
      )
    }
    if (mine.checksum !== checksum) {
      throw new MigrationError(
        `Migration ${name} was applied with another text. Migrations are never edited: add a new one.`,
      )
    }
  }
  return known.filter(({ name }) => !applied.has(name))
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('begin')
  try {
    await client.query(migration.sql)
    await client.query('insert into service.migration (name, checksum) values ($1, $2)', [
      migration.name,
      migration.checksum,
    ])
    await client.query('commit')
  } catch (cause) {
    // When the connection is lost, the server rolls back.
    await client.query('rollback').catch(() => {})
    throw new MigrationError(
      `Migration ${migration.name} failed: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    )
  }
}
