import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Actor, actor, testService } from '#test/harness.ts'

const t = await testService()
const all = await t.key(['gateway.read', 'gateway.write', 'gateway.delete'])

const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))
const rowsOf = async (text: string) => (await sql(text)).rows

before(() =>
  sql(`
    create view much as select repeat('x', 600000) as text from generate_series(1, 2);
    create table account (id int primary key, owner text not null, balance numeric not null check (balance >= 0));
    create table entry (id int generated always as identity primary key, account_id int references account, amount numeric);
    insert into account values (1, 'Ada', 100), (2, 'Bob', 0)`),
)

const events: string[] = []
t.service.kernel.events.subscribe((name) => void events.push(name))

type Step = { id: string; kind: string; payload: object }
const insert = (id: string, table_name: string, row: object): Step => ({
  id,
  kind: 'insert',
  payload: { table_name, insert_body: row },
})
const fetchAll = (id: string, table_name: string): Step => ({ id, kind: 'fetch', payload: { table_name } })

let keys = 0
const run = (
  who: Actor,
  operations: readonly Step[],
  more: { key?: string; [field: string]: unknown } = {},
) => {
  const { key, ...rest } = more
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
  return who.post('/gateway/transaction', { operations, ...rest }, { headers })
}
const newKey = () => `key-${++keys}`

test('a repeated key returns the stored response without running again', async () => {
  const key = newKey()
  const operations = [insert('a', 'entry', { account_id: 1, amount: '0.10' })]
  const first = await run(all, operations, { key })
  assert.equal(first.status, 200, first.text)
  assert.equal(first.headers.get('idempotency-replayed'), null)
  events.length = 0
  const again = await run(all, operations, { key })
  assert.deepEqual(
    [again.status, again.text, again.headers.get('idempotency-replayed')],
    [200, first.text, 'true'],
  )
  const inBody = await run(all, operations, { idempotency_key: key })
  assert.equal(inBody.text, first.text)
  assert.deepEqual(events, [])
  assert.equal((await rowsOf('select from entry where amount = 0.10')).length, 1)

  const other = await run(all, [insert('a', 'entry', { account_id: 1, amount: '0.11' })], { key })
  assert.deepEqual([other.status, other.body.code], [409, 'idempotency_key_reused'])
})

test('idempotency keys are separate for each API key, and a key that has lost its right gets no stored response', async () => {
  const key = newKey()
  const operations = [insert('a', 'entry', { account_id: 1, amount: 7 })]
  const [one, two] = [await t.key(['entry.write']), await t.key(['entry.write'])]
  assert.equal((await run(one, operations, { key })).status, 200)
  const other = await run(two, operations, { key })
  assert.deepEqual([other.status, other.headers.get('idempotency-replayed')], [200, null])
  assert.equal((await rowsOf('select from entry where amount = 7')).length, 2)
  await t.admin.send('PATCH', `/admin/api-keys/${one.keyId}`, { body: { rights: ['account.read'] } })
  assert.equal((await run(one, operations, { key })).status, 403)
})

test('a key can be reused after a failure', async () => {
  const key = newKey()
  const operations = [insert('a', 'account', { id: 6, owner: 'F', balance: 1 })]
  await sql(`insert into account values (6, 'G', 1)`)
  assert.equal((await run(all, operations, { key })).status, 409)
  await sql('delete from account where id = 6')
  assert.equal((await run(all, operations, { key })).status, 200)
})

test('of concurrent requests with one key, one runs and all get its response', async () => {
  for (const isolation_level of [undefined, 'repeatable_read', 'serializable']) {
    const key = newKey()
    const amount = 1_000 + keys
    const options = isolation_level === undefined ? {} : { isolation_level }
    const answers = await Promise.all(
      Array.from({ length: 25 }, () =>
        run(all, [insert('a', 'entry', { account_id: 1, amount })], { key, options }),
      ),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
    assert.equal(answers.filter(({ headers }) => headers.get('idempotency-replayed') === null).length, 1)
    assert.equal((await rowsOf(`select from entry where amount = ${amount}`)).length, 1)
  }
})

test('if the first of concurrent requests loses its connection, the next one runs', async () => {
  const key = newKey()
  const operations = [insert('a', 'account', { id: 7, owner: 'I', balance: 1 })]
  const answers = await withClient(t.clientUrl, async (client) => {
    await client.query(`begin; insert into account values (7, 'H', 1)`)
    const waiting = Promise.all(Array.from({ length: 5 }, () => run(all, operations, { key })))
    // One request has the key and waits for the row; the others wait for the key.
    const first = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like 'insert into "public"."account"%'`
    while ((await rowsOf(first)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    await client.query('rollback')
    return waiting
  })
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 502])
  assert.deepEqual(await rowsOf('select owner from account where id = 7'), [{ owner: 'I' }])
})

test('a key is kept for 24 hours', async () => {
  const key = newKey()
  const operations = [insert('a', 'entry', { account_id: 1, amount: 5_000 })]
  const count = async () => (await rowsOf('select from entry where amount = 5000')).length
  await run(all, operations, { key })
  t.advance(24 * 3_600_000 - 60_000)
  await run(all, operations, { key })
  assert.equal(await count(), 1)
  t.advance(61_000)
  await run(all, operations, { key })
  assert.equal(await count(), 2)
  const old = await rowsOf(
    `select from service_idempotency where created_at < (select max(created_at) from service_idempotency) - interval '1 day'`,
  )
  assert.deepEqual(old, [], 'old entries are deleted by later requests')
})

test('a read-only transaction sees one snapshot, and stores no response', async () => {
  const key = newKey()
  const more = { key, options: { read_only: true, isolation_level: 'repeatable_read' } }
  const kept = async () => (await rowsOf('select count(*)::int from service_idempotency'))[0].count
  const before = await kept()
  const first = await run(all, [fetchAll('a', 'account'), fetchAll('b', 'account')], more)
  assert.equal(first.status, 200, first.text)
  assert.deepEqual(first.body.results[0].data, first.body.results[1].data)
  await sql(`insert into account values (20, 'R', 1)`)
  const again = await run(all, [fetchAll('a', 'account'), fetchAll('b', 'account')], more)
  assert.equal(again.headers.get('idempotency-replayed'), null)
  assert.equal(again.body.results[0].data.length, first.body.results[0].data.length + 1)
  assert.equal(await kept(), before)
})

test('operation ids do not count as part of the request, and a replay returns the ids of its own body', async () => {
  const key = newKey()
  const steps = (...ids: string[]) => [
    insert(ids[0] ?? '', 'entry', { account_id: 1, amount: '31.10' }),
    {
      id: ids[1] ?? '',
      kind: 'update',
      payload: { table_name: 'entry', set: { amount: 32 }, conditions: [{ column: 'amount', value: 31.1 }] },
    },
    { id: ids[2] ?? '', kind: 'fetch', payload: { table_name: 'account', columns: 'id', limit: 1 } },
  ]
  const first = await run(all, steps('a', 'b', 'c'), { key })
  assert.equal(first.status, 200, first.text)
  const again = await run(all, steps('x "1"', '"kind":"y"', 'a'), { key })
  assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, 'true'], again.text)
  const ids = ['x "1"', '"kind":"y"', 'a']
  assert.deepEqual(
    again.body.results,
    first.body.results.map((result: object, index: number) => ({ ...result, id: ids[index] })),
  )
  assert.equal((await rowsOf('select from entry where amount = 32')).length, 1)
  const turned = await run(all, steps('a', 'b', 'c').reverse(), { key })
  assert.deepEqual([turned.status, turned.body.code], [409, 'idempotency_key_reused'])
})

test('for a response above the limit only digests and counts are stored, and the request is not run again', async () => {
  const key = newKey()
  const operations = [insert('a', 'entry', { account_id: 1, amount: 77 }), fetchAll('b', 'much')]
  const first = await run(all, operations, { key })
  assert.deepEqual([first.status, first.body.results[1].data.length], [200, 2])
  const again = await run(all, operations, { key })
  assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, 'true'], again.text)
  const [inserted, read] = again.body.results
  const { result_sha256: digest, ...counts } = read
  assert.deepEqual(counts, { id: 'b', kind: 'fetch', data: [], data_omitted: true, rows: 2 })
  const { text } = first
  const whole = text.slice(text.indexOf('"kind":"fetch"'), text.indexOf(']},"committed"'))
  assert.equal(digest, hash('sha256', `{${whole}`))
  assert.deepEqual([inserted.id, inserted.rows, inserted.affected_rows, inserted.data], ['a', 1, 1, []])
  assert.equal((await rowsOf('select from entry where amount = 77')).length, 1)
  const [{ size }] = await rowsOf('select max(length(answer)) as size from service_idempotency')
  assert.ok(size < 10_000, `${size}`)
})

test('data operations cannot access the idempotency table', async () => {
  const table_name = 'service_idempotency'
  for (const [method, path, more] of [
    ['POST', '/gateway/fetch', {}],
    ['POST', '/query/count', {}],
    ['POST', '/gateway/insert', { insert_body: { key: 'x', body: 'x', answer: '[]' } }],
    ['POST', '/gateway/update', { set: { answer: '[]' }, allow_unbounded: true }],
    ['POST', '/gateway/delete', { allow_unbounded: true }],
  ] as const) {
    for (const name of [table_name, `public.${table_name}`]) {
      const answer = await all.send(method, path, { body: { table_name: name, ...more } })
      assert.deepEqual([answer.status, answer.body.code], [404, 'table_not_found'], `${path} ${name}`)
    }
  }
  const inside = await run(all, [fetchAll('a', table_name)], { key: newKey() })
  assert.deepEqual([inside.status, inside.body.code], [404, 'table_not_found'])
})

test('if the idempotency table cannot be created or used, requests with a key are rejected', async () => {
  const operations = [insert('a', 'account', { id: 8, owner: 'J', balance: 1 })]
  await sql('alter table service_idempotency rename column body to other')
  const broken = await run(all, operations, { key: newKey() })
  assert.deepEqual([broken.status, broken.body.code], [400, 'idempotency_unavailable'])
  await sql('alter table service_idempotency rename column other to body')

  const logging = await t.key(['*'], { client_name: 'logging' })
  const reader = actor(t.url, { apikey: logging.apiKey, 'x-service-client': 'logging' })
  const answer = await run(reader, [fetchAll('a', 'database_audit_log')], { key: newKey() })
  assert.deepEqual([answer.status, answer.body.code], [400, 'idempotency_unavailable'])
  assert.equal((await run(reader, [fetchAll('a', 'database_audit_log')])).status, 200)
  assert.deepEqual(await rowsOf('select from account where id = 8'), [])
})

test('all connections of the client work afterwards', async () => {
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => all.post('/gateway/fetch', { table_name: 'account' })),
  )
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  const open = await rowsOf(
    `select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
  )
  assert.deepEqual(open, [])
})

test('concurrent first requests succeed while the idempotency table is being created', async () => {
  for (let round = 0; round < 3; round++) {
    await sql('drop table if exists service_idempotency')
    const key = newKey()
    const row = { account_id: 1, amount: `5.${round}` }
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => run(all, [insert(`o${index}`, 'entry', row)], { key })),
    )
    for (const { status, text } of answers) assert.equal(status, 200, text)
    const made = answers.filter(({ headers }) => headers.get('idempotency-replayed') === null)
    assert.equal(made.length, 1)
    assert.equal((await rowsOf(`select from entry where amount = 5.${round}`)).length, 1)
  }
})
