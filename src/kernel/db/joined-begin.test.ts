import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { testDatabase } from '#test/database.ts'
import { connectOnce } from './connect.ts'

const { db, pool, close } = connectOnce((await testDatabase()).url)
after(close)

/** Answers of the server, each of which it was woken for. */
let answers = 0
pool.on('connect', (client) => {
  const { connection } = client as unknown as { connection: { on(event: string, hear: () => void): void } }
  connection.on('readyForQuery', () => answers++)
})
await sql`create table public.note (id int primary key)`.execute(db)

const ids = async (): Promise<readonly number[]> =>
  (await sql<{ id: number }>`select id from public.note order by id`.execute(db)).rows.map(({ id }) => id)
const insert = (id: number) => sql<{ id: number }>`insert into public.note values (${id}) returning id`

/** The first of a connection prepares BEGIN, and that of a text its statement. */
const inTransaction = (id: number) =>
  db.transaction().execute(async (db) => (await insert(id).execute(db)).rows)

test('BEGIN and the first statement of a transaction have one answer', async () => {
  await inTransaction(1)
  const before = answers
  assert.deepEqual(await inTransaction(2), [{ id: 2 }])
  assert.equal(answers - before, 2, 'that one, and that of COMMIT')
})

test('what a transaction writes first is undone with it, and its connection goes on', async () => {
  const undone = db.transaction().execute(async (db) => {
    await insert(3).execute(db)
    throw new Error('no')
  })
  await assert.rejects(undone, /^Error: no$/)
  await assert.rejects(inTransaction(1), { code: '23505' })
  assert.deepEqual(await inTransaction(4), [{ id: 4 }])
  assert.deepEqual(await ids(), [1, 2, 4])
})

test('a first statement that PostgreSQL cannot read fails like any other', async () => {
  const unreadable = (db_: typeof db) => sql`selekt ${1}`.execute(db_)
  await assert.rejects(db.transaction().execute(unreadable), { code: '42601' })
  await assert.rejects(db.transaction().execute(unreadable), { code: '42601' })
  await assert.rejects(unreadable(db), { code: '42601' })
  assert.deepEqual(await inTransaction(5), [{ id: 5 }])
})

test('a transaction without a statement sends nothing', async () => {
  const before = answers
  await db.transaction().execute(async () => {})
  await assert.rejects(
    db.transaction().execute(async () => {
      throw new Error('no')
    }),
  )
  assert.equal(answers, before)
  assert.deepEqual(await inTransaction(6), [{ id: 6 }])
})

test('rows of the first statement are read as those of others: types, none, and a second result', async () => {
  const read = await db.transaction().execute(async (db) => {
    const first = await sql`select 1 as one, now() is not null as yes, null as nothing where ${true}`.execute(
      db,
    )
    const second = await sql`select 2 as two`.execute(db)
    return [...first.rows, ...second.rows]
  })
  assert.deepEqual(read, [{ one: 1, yes: true, nothing: null }, { two: 2 }])
  const none = await db.transaction().execute((db) => sql`select 1 where ${false}`.execute(db))
  assert.deepEqual(none.rows, [])
  const changed = await db.transaction().execute((db) => sql`delete from public.note`.execute(db))
  assert.equal(changed.numAffectedRows, 5n)
})

test('a statement of a transaction whose BEGIN has failed never runs by itself, and the next transaction has another connection', async () => {
  await inTransaction(7)
  // As a pooler may forget it. A cancelled BEGIN is the same.
  await sql`deallocate "begin"`.execute(db)
  const outcomes: unknown[] = []
  await assert.rejects(
    db.transaction().execute(async (db) => {
      const both = await Promise.allSettled([insert(8).execute(db), insert(9).execute(db)])
      outcomes.push(...both.map(({ status }) => status))
    }),
  )
  assert.deepEqual(outcomes, ['rejected', 'rejected'])
  assert.deepEqual(await inTransaction(10), [{ id: 10 }])
  assert.deepEqual(await ids(), [7, 10])
})

/** Always the same text, of which a connection knows the name. */
const written = (value: object) => sql<{ value: object }>`select ${value}::jsonb as value`
const UNWRITABLE = { big: 1n }

test('a transaction whose first value cannot be sent is undone, and its connection goes on', async () => {
  const unsent = db.transaction().execute((db) => written(UNWRITABLE).execute(db))
  await assert.rejects(unsent, TypeError)
  assert.deepEqual(await inTransaction(11), [{ id: 11 }])
})

test('a value that cannot be sent leaves its statement to the values of others, and a transaction open', async () => {
  for (let round = 0; round < 2; round++) {
    await assert.rejects(written(UNWRITABLE).execute(db), TypeError)
    assert.deepEqual((await written({ round }).execute(db)).rows, [{ value: { round } }])
    const undone = db.transaction().execute(async (db) => {
      await assert.rejects(written(UNWRITABLE).execute(db), TypeError)
      assert.deepEqual((await insert(12).execute(db)).rows, [{ id: 12 }])
      assert.deepEqual((await written({ round }).execute(db)).rows, [{ value: { round } }])
      throw new Error('no')
    })
    await assert.rejects(undone, /^Error: no$/)
  }
  assert.ok(!(await ids()).includes(12))
})
