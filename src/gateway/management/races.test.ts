import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type Actor, type Answer, actor, controlDatabase, testService } from '#test/harness.ts'

const database = await testDatabase()
const controlUrl = await controlDatabase()
const config = { clients: { app: { url: database.url } } }
/** Two processes on one control database. */
const [t, second] = [await testService({ controlUrl, config }), await testService({ controlUrl, config })]
const client = { 'x-service-client': 'app' }
const key = await t.key(['*'], { client_name: 'app' })

const as = (who: Actor) => ({
  edit: (table: string, ...operations: object[]) =>
    who.send('PATCH', `/management/tables/${table}`, { body: { operations }, headers: client }),
  drop: (table: string) => who.send('DELETE', `/management/tables/${table}`, { body: {}, headers: client }),
  post: (path: string, body: object) => who.post(path, body, { headers: client }),
})
const here = as(key)
const there = as(actor(second.url, { apikey: key.apiKey }))
const both = [here, there] as const

const sql = (text: string) =>
  withClient(database.url, async (connection) => (await connection.query(text)).rows)

/** Refusals that a race may end in; nothing else, and no failure of the service. */
const ALLOWED = new Set([200, 400, 404, 409, 503])

/** Every answer is a success or a clean refusal, no lock is left, and both processes show the structure of the database. */
async function expectClean(answers: readonly Answer[]): Promise<void> {
  for (const { status, text } of answers) assert.ok(ALLOWED.has(status), `${status} ${text}`)
  const busy = `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and backend_type = 'client backend' and state <> 'idle'`
  await eventually(async () => (await sql(busy)).length === 0)
  const real =
    await sql(`select c.relname as table_name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> 'service_idempotency' group by 1 order by 1`)
  for (const one of both)
    for (const { table_name, columns } of real) {
      const { body, text } = await one.post('/gateway/fetch', { table_name, limit: 1, columns })
      assert.equal(body.status, 'success', text)
    }
}

async function created(table_name: string): Promise<void> {
  const columns = [
    { name: 'id', data_type: 'int' },
    { name: 'a', data_type: 'text' },
  ]
  const { status, text } = await here.post('/management/tables', { table_name, columns })
  assert.equal(status, 200, text)
}

/** On a slow machine, drops beside other requests may all have given up waiting for the table. */
async function dropLast(table: string): Promise<void> {
  const { status, text } = await here.drop(table)
  assert.equal(status, 200, text)
}

const times = <T>(count: number, work: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => work(index))

test('edits of one table by two processes all take effect, or are refused', async () => {
  await created('one')
  const answers = await Promise.all(
    times(12, (index) =>
      both[index % 2 === 0 ? 0 : 1].edit('one', {
        operation: 'add_column',
        column: { name: `c${index}`, data_type: 'int' },
      }),
    ),
  )
  await expectClean(answers)
  const added = answers.filter(({ status }) => status === 200).length
  const [found] = await sql(`select count(*)::int as n from pg_attribute
    where attrelid = 'one'::regclass and attname ~ '^c[0-9]+$' and not attisdropped`)
  assert.equal(found?.n, added)
  assert.ok(added > 0)
})

test('of several renamings of a table one wins, in both processes', async () => {
  await created('first')
  const answers = await Promise.all(
    times(6, (index) =>
      both[index % 2 === 0 ? 0 : 1].edit('first', {
        operation: 'rename_table',
        new_name: index < 3 ? 'two' : 'three',
      }),
    ),
  )
  await expectClean(answers)
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
})

test('an index is created before its table is dropped, or not at all', async () => {
  // In one of about ten rounds, a table is dropped while the definition of its new index is read.
  for (let round = 0; round < 15; round++) {
    await created('indexed')
    const answers = await Promise.all([
      ...times(3, (index) =>
        here.post('/management/indexes', { table_name: 'indexed', columns: ['a'], index_name: `i${index}` }),
      ),
      ...times(3, () => there.drop('indexed')),
    ])
    await expectClean(answers)
    const dropped = answers.slice(3).filter(({ status }) => status === 200).length
    assert.ok(dropped <= 1)
    if (dropped === 0) await dropLast('indexed')
  }
})

test('a table is dropped while rows are read and written', async () => {
  await created('gone')
  const operations = [
    { id: 'w', kind: 'insert', payload: { table_name: 'gone', insert_body: { id: 100 } } },
    { id: 'r', kind: 'fetch', payload: { table_name: 'gone' } },
  ]
  const answers = await Promise.all([
    ...times(5, () => here.post('/gateway/fetch', { table_name: 'gone' })),
    ...times(5, (index) =>
      there.post('/gateway/insert', { table_name: 'gone', insert_body: { id: index + 2 } }),
    ),
    there.post('/gateway/transaction', { operations }),
    here.drop('gone'),
    ...times(5, () => there.post('/gateway/fetch', { table_name: 'gone' })),
    ...times(5, (index) =>
      here.post('/gateway/insert', { table_name: 'gone', insert_body: { id: index + 20 } }),
    ),
  ])
  await expectClean(answers)
  if (answers[11]?.status !== 200) await dropLast('gone')
  for (const one of both) assert.equal((await one.post('/gateway/fetch', { table_name: 'gone' })).status, 404)
})
