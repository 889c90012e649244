import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { testKernel } from '#test/harness.ts'
import { atomically, type Kernel } from '../kernel.ts'
import { FOLLOWED_TABLES } from './followed-tables.ts'

const kernel = await testKernel()
const ID = '0198c0de-0000-7000-8000-000000000001'

/** Times that the work waits for the caches of all processes. */
async function waitsOf(work: (kernel: Kernel) => Promise<unknown>): Promise<number> {
  let count = 0
  const settle = async (): Promise<void> => {
    await kernel.coherence.settle()
    count++
  }
  await atomically({ ...kernel, coherence: { ...kernel.coherence, settle } }, work)
  return count
}

/** Names of the functions whose text matches, and of those that call one of them. */
async function functionsThat(pattern: RegExp): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string; text: string }>`
    select proname as name, prosrc as text from pg_proc where pronamespace = 'service'::regnamespace`.execute(
    kernel.db,
  )
  const found = new Set(rows.filter(({ text }) => pattern.test(text)).map(({ name }) => name))
  for (let size = -1; size !== found.size; ) {
    size = found.size
    for (const { name, text } of rows)
      if ([...found].some((callee) => text.includes(`service.${callee}(`))) found.add(name)
  }
  return [...found]
}

test('the followed tables are those of the triggers that notify, and those that lead there', async () => {
  const { rows: sent } = await sql<{ table: string; change: string }>`
    select distinct event_object_table as table, lower(event_manipulation) as change from information_schema.triggers
      where trigger_schema = 'service' and action_statement like '%service.tell_%'`.execute(kernel.db)
  const expected = new Map<string, Set<string>>()
  const add = (table: string, change: string) => {
    const changes = expected.get(table) ?? new Set()
    expected.set(table, changes.add(change))
  }
  for (const { table, change } of sent) add(table, change)
  const followed = [...expected.keys()]
  const { rows: cascades } = await sql<{ table: string }>`
    select distinct p.relname as table from pg_constraint c join pg_class p on p.oid = c.confrelid join pg_class r on r.oid = c.conrelid
      where c.contype = 'f' and c.confdeltype in ('c', 'n', 'd') and r.relname = any (${followed})`.execute(
    kernel.db,
  )
  for (const { table } of cascades) add(table, 'delete')
  const changing = await functionsThat(
    new RegExp(`(update|delete from) service\\."?(${followed.join('|')})\\b`),
  )
  const { rows: indirect } = await sql<{ table: string; change: string }>`
    select distinct event_object_table as table, lower(event_manipulation) as change from information_schema.triggers
      where trigger_schema = 'service' and action_statement like any (${changing.map((name) => `%service.${name}(%`)})`.execute(
    kernel.db,
  )
  for (const { table, change } of indirect) add(table, change)
  const sorted = (entries: Iterable<readonly [string, Iterable<string>]>) =>
    [...entries].map(([table, changes]) => [table, [...changes].toSorted()]).toSorted()
  assert.deepEqual(sorted(Object.entries(FOLLOWED_TABLES)), sorted(expected))
})

test('a transaction waits for the caches once, however a statement changes what they hold', async () => {
  const changes: ((kernel: Kernel) => Promise<unknown>)[] = [
    ({ db }) => db.updateTable('user').set({ name: 'A' }).where('id', '=', ID).execute(),
    ({ db }) => db.updateTable('organization as o').set({ name: 'A' }).where('o.id', '=', ID).execute(),
    ({ db }) => db.deleteFrom('session').where('id', '=', ID).execute(),
    ({ db }) => db.deleteFrom('apiKeyConfig').where('clientName', '=', 'none').execute(),
    ({ db }) =>
      db
        .with('gone', (with_) => with_.deleteFrom('member').where('id', '=', ID).returning('id'))
        .selectFrom('gone')
        .selectAll()
        .execute(),
    ({ db }) => sql`update service."user" set name = 'A' where id = ${ID}`.execute(db),
    ({ db }) => sql`with gone as (delete from service.session where id = ${ID}) select 1`.execute(db),
    ({ db }) => sql`${sql`delete from service.member`} where id = ${ID}`.execute(db),
  ]
  const waits = await Promise.all(changes.map(waitsOf))
  assert.deepEqual(waits, [1, 0, 1, 1, 1, 1, 1, 1])
  assert.equal(
    await waitsOf(async (kernel) => {
      for (const change of changes) await atomically(kernel, change)
    }),
    1,
  )
})

test('a transaction that changes nothing of that kind waits for no cache', async () => {
  const others: ((kernel: Kernel) => Promise<unknown>)[] = [
    ({ db }) => db.selectFrom('session').select('id').execute(),
    ({ db }) => db.deleteFrom('verification').where('userId', '=', ID).execute(),
    ({ db }) => db.insertInto('rateLimit').values({ key: 'one', points: 1 }).execute(),
    ({ db }) => sql`select id from service."user" where id = ${ID} for no key update`.execute(db),
    ({ db }) => sql`update service.organization set name = 'A' where id = ${ID}`.execute(db),
  ]
  assert.deepEqual(await Promise.all(others.map(waitsOf)), [0, 0, 0, 0, 0])
})

test('a transaction that is rolled back waits for no cache', async () => {
  let count = 0
  const settle = async (): Promise<void> => void count++
  const undone = atomically({ ...kernel, coherence: { ...kernel.coherence, settle } }, async ({ db }) => {
    await db.deleteFrom('session').where('id', '=', ID).execute()
    throw new Error('undone')
  })
  await assert.rejects(undone, /undone/)
  assert.equal(count, 0)
})
