import type { Pooler, RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { firstWord } from '#databases/drivers/postgres/sql/statement-text.ts'
import { fail } from '#databases/failures.ts'
import { keepsStatements } from '#kernel/db/pooler.ts'

/** The message of every version of PgBouncer about settings in the startup message that it does not support. */
export const isPoolersRefusal = (error: unknown): boolean =>
  error instanceof Error && /unsupported startup parameter/i.test(error.message)

export async function pooledBy(
  client: RowClient,
  settings: Readonly<Record<string, string>>,
): Promise<Pooler> {
  const local = Object.entries(settings).map(
    ([name, value]) =>
      `pg_catalog.set_config('${name.replace(/^default_(?=transaction_)/, '')}', '${value}', true)`,
  )
  return { settings: local.join(', '), prepares: await keepsStatements(client) }
}

/** Begins a transaction of several statements. Returns the process id of its session. */
export async function beginPooled(client: RowClient): Promise<number> {
  const results: unknown = await client.query(
    `begin; select ${client.pooled?.settings}, pg_catalog.pg_backend_pid() as pid`,
  )
  // pg returns an array for several statements in one text.
  const [, { rows }] = results as readonly [unknown, { readonly rows: readonly { readonly pid: number }[] }]
  return rows[0]?.pid ?? 0
}

/** A caller's own text runs in one transaction and must not end it: later statements could run in another session. */
export function refuseTransactionControl(statements: readonly string[]): void {
  const word = statements.map(firstWord).find((first) => CONTROL.has(first))
  if (word === undefined) return
  throw fail('invalid_sql', {
    message: 'This client is reached through a pooler, where a text runs as one transaction',
    hint: `Leave out ${word.toUpperCase()}: either the whole text takes effect, or nothing.`,
  })
}

const CONTROL = new Set(['begin', 'start', 'commit', 'end', 'rollback', 'abort', 'prepare'])

/** DISCARD ALL as far as a transaction allows; statements prepared by the pooler stay. */
const CLEANING = `close all; set session authorization default; reset all; unlisten *;
select pg_catalog.pg_advisory_unlock_all(); discard temp; discard sequences;
do $$ declare found record; begin
  for found in select p.name from pg_catalog.pg_prepared_statements as p where p.from_sql loop
    execute pg_catalog.format('deallocate %I', found.name);
  end loop;
end $$`

/** Ends the transaction of a caller's own text; deferred constraints fail here. */
export async function finishPooled(client: RowClient, end: 'commit' | 'rollback'): Promise<void> {
  if (end === 'commit') await client.query('set constraints all immediate')
  await client.query(CLEANING)
  await client.query(end)
}

/** Cleans up after a text that failed. The chained transaction keeps the session until it is clean. */
export async function cleanPooled(client: RowClient): Promise<void> {
  if (client.getTransactionStatus() === 'I') return
  await client.query('rollback and chain')
  await client.query(CLEANING)
  await client.query('commit')
}
