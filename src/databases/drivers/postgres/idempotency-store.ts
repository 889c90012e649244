import type { IdempotencyStore, OpenTransaction, Presence, StoredAnswer } from '#databases/drivers/driver.ts'
import type { Runner } from '#databases/drivers/postgres/runner.ts'
import { bind, createSql, type SqlBuilder } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { withSystemOperators } from '#databases/drivers/postgres/sql/system-names.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

/**
 * The catalogue excludes this table, so that no plan reaches it. Row-level security without a policy excludes other roles that default
 * privileges may have granted it to. Creation is serialised by a lock and skipped when the table exists: otherwise later creators would
 * lock it against its users, and both would wait for each other.
 */
const CREATE_TABLE = [
  `select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('public.service_idempotency'))`,
  `do $$ begin
     if pg_catalog.to_regclass('public.service_idempotency') is null then
       create table public.service_idempotency
         (key text primary key, body text not null, answer text not null, created_at timestamptz not null);
       create index service_idempotency_created_at on public.service_idempotency (created_at);
       alter table public.service_idempotency enable row level security;
     end if;
   end $$`,
]

type Create = (statements: readonly string[]) => Promise<void>

/** `run` has the client's own role, which owns the table, whatever role the transaction has. */
export function createIdempotencyStore(run: Runner, create: Create): IdempotencyStore {
  async function find(key: string, since: Date, presence?: Presence): Promise<StoredAnswer | undefined> {
    const sql = createSql('')
    writeFind(sql, key, since)
    try {
      return (await run.value(sql, undefined, undefined, presence)) as StoredAnswer | undefined // as the statement builds it
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'table_not_found') throw unavailable(error)
      await make(create)
      return undefined
    }
  }

  async function claim(
    on: OpenTransaction,
    key: string,
    { body, at, since }: Parameters<IdempotencyStore['claim']>[2],
  ) {
    const sql = createSql(
      'insert into public.service_idempotency as s (key, body, answer, created_at) values (',
    )
    sql.text += `${bind(sql, key)}, ${bind(sql, body)}, '', ${bind(sql, at.toISOString())}) on conflict (key) do update`
    sql.text += ` set body = excluded.body, answer = '', created_at = excluded.created_at`
    sql.text += ` where s.created_at operator(pg_catalog.<) ${bind(sql, since.toISOString())} returning true as claimed`
    try {
      return (await run.value(sql, undefined, on)) === true
    } catch (error) {
      throw unavailable(error)
    }
  }

  async function store(on: OpenTransaction, key: string, answer: string): Promise<void> {
    const sql = createSql('update public.service_idempotency set answer = ')
    sql.text += `${bind(sql, answer)} where key operator(pg_catalog.=) ${bind(sql, key)}`
    await run.finish({ sql }, on)
  }

  return { find, claim, store }
}

/** Also deletes some expired answers. This is outside the transaction, where it could conflict with others. */
function writeFind(sql: SqlBuilder, key: string, since: Date): void {
  const oldest = bind(sql, since.toISOString())
  sql.text = withSystemOperators(`with gone as (delete from public.service_idempotency where key = any (
      select key from public.service_idempotency where created_at < ${oldest}::pg_catalog.timestamptz
      order by created_at limit 50 for update skip locked))
    select pg_catalog.json_build_object('body', body, 'answer', answer) as stored from public.service_idempotency
    where key = ${bind(sql, key)} and created_at >= ${oldest}::pg_catalog.timestamptz`)
}

async function make(create: Create): Promise<void> {
  try {
    await create(CREATE_TABLE)
  } catch (error) {
    // Another process created it at the same time.
    const isThere = error instanceof Failure && ['object_exists', 'unique_violation'].includes(error.code)
    if (!isThere) throw unavailable(error)
  }
}

/** A lost or conflicting connection says nothing about the table. */
const PASSING_CODES = new Set([
  'client_unavailable',
  'client_busy',
  'client_refused',
  'unsafe_client',
  'connection_lost',
  'statement_timeout',
  'write_conflict',
])

function unavailable(error: unknown): unknown {
  if (!(error instanceof Failure) || PASSING_CODES.has(error.code)) return error
  return fail('idempotency_unavailable', {
    hint: 'The role of this client must be able to create and use the table public.service_idempotency.',
    cause: error.cause ?? error,
  })
}
