import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { type Actor, actor, testService } from '#test/harness.ts'

const t = await testService()
const all = await t.key(['gateway.read', 'gateway.write', 'gateway.delete'])

const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))
const rowsOf = async (text: string) => (await sql(text)).rows

before(() =>
  sql(`
    create table account (id int primary key, owner text not null, balance numeric not null check (balance >= 0));
    create table entry (id int generated always as identity primary key, account_id int references account, amount numeric);
    insert into account values (1, 'Ada', 100), (2, 'Bob', 0);
    create table large as select id, repeat('x', 100000) as pad from generate_series(1, 200) id;
    create table sparse as select 1 as id, null::text as word;
    create table secret (word text);
    insert into secret values ('hush')`),
)

const events: string[] = []
t.service.kernel.events.subscribe((name) => void events.push(name))

type Step = { id: string; kind: string; payload: object }
const insert = (id: string, table_name: string, row: object): Step => ({
  id,
  kind: 'insert',
  payload: { table_name, insert_body: row },
})
const update = (id: string, key: number, set: object): Step => ({
  id,
  kind: 'update',
  payload: { table_name: 'account', set, conditions: [{ eq_column: 'id', eq_value: key }] },
})
const fetchAll = (id: string, table_name: string): Step => ({ id, kind: 'fetch', payload: { table_name } })

const run = (
  who: Actor,
  operations: readonly Step[],
  more: { key?: string; [field: string]: unknown } = {},
) => {
  const { key, ...rest } = more
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
  return who.post('/gateway/transaction', { operations, ...rest }, { headers })
}
const transfer = [
  update('from', 1, { balance: 70 }),
  update('to', 2, { balance: '30.000000000000000001' }),
  insert('book', 'entry', { account_id: 2, amount: 30 }),
  {
    id: 'see',
    kind: 'fetch',
    payload: {
      table_name: 'account',
      sort_by: { field: 'id' },
      group_by: 'owner',
      aggregation_column: 'balance',
      count: 'exact',
    },
  },
]

test('operations are committed together, with their results in order', async () => {
  events.length = 0
  const answer = await run(all, transfer, { options: { isolation_level: 'serializable' } })
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.body.status, 'success')
  assert.equal(answer.body.committed, true)
  assert.deepEqual(answer.body.data, { committed: true, results: answer.body.results })
  const [from, to, book, see] = answer.body.results
  assert.deepEqual(from, {
    id: 'from',
    kind: 'update',
    data: [{ id: 1, owner: 'Ada', balance: 70 }],
    affected_rows: 1,
  })
  assert.deepEqual([to.affected_rows, book.kind, book.affected_rows], [1, 'insert', 1])
  assert.deepEqual([see.data.length, see.count, see.post_processing.grouped.length], [2, 2, 2])
  assert.match(answer.text, /"balance":30\.000000000000000001/)
  assert.deepEqual(events, ['gateway_update', 'gateway_update', 'gateway_insert', 'gateway_fetch'])
})

test('the header X-Strip-Nulls applies to fetches, but not to one that has true or false itself', async () => {
  for (const [own, row] of [
    [{}, { id: 1 }],
    [{ strip_nulls: false }, { id: 1, word: null }],
    [{ strip_nulls: 'false' }, { id: 1 }],
  ] as const) {
    const operations = [{ id: 'see', kind: 'fetch', payload: { table_name: 'sparse', ...own } }]
    const headers = { 'x-strip-nulls': 'true' }
    const answer = await all.post('/gateway/transaction', { operations }, { headers })
    assert.deepEqual(answer.body.results[0].data, [row], answer.text)
  }
})

test('one failure rolls back everything, names its operation and emits no events', async () => {
  events.length = 0
  const before = await rowsOf('select * from account order by id')
  const answer = await run(all, [
    insert('new', 'account', { id: 3, owner: 'C', balance: 1 }),
    update('broke', 1, { balance: -1 }),
  ])
  assert.deepEqual([answer.status, answer.body.code], [422, 'check_violation'])
  const { operation_id, operation_index, constraint } = answer.body.data.details
  assert.deepEqual([operation_id, operation_index, constraint], ['broke', 1, 'account_balance_check'])
  assert.deepEqual(await rowsOf('select * from account order by id'), before)
  assert.deepEqual(events, [])
})

test('rights of all operations are checked before the first statement runs', async () => {
  const writer = await t.key(['account.write', 'account.read'])
  const operations = [
    insert('fine', 'account', { id: 4, owner: 'D', balance: 1 }),
    fetchAll('peek', 'secret'),
  ]
  for (const more of [{}, { key: 'a key' }]) {
    const answer = await run(writer, operations, more)
    assert.deepEqual([answer.status, answer.body.code], [403, 'insufficient_rights'])
    assert.deepEqual(
      [answer.body.data.details.required_right, answer.body.data.details.operation_id],
      ['secret.read', 'peek'],
    )
  }
  assert.deepEqual(await rowsOf('select from account where id = 4'), [])
  const stranger = await run(actor(t.url, { 'x-service-client': 'default' }), operations)
  assert.equal(stranger.status, 401)
})

test('an invalid transaction is rejected with its cause', async () => {
  const refused = async (operations: readonly unknown[], more: Record<string, unknown> = {}) => {
    // Invalid operations as well.
    const { status, body } = await run(all, operations as Step[], more)
    return [status, body.code]
  }
  const one = fetchAll('a', 'account')
  assert.deepEqual(await refused([]), [400, 'validation_error'])
  assert.deepEqual(await refused([{ ...one, kind: 'drop' }]), [400, 'validation_error'])
  assert.deepEqual(await refused([one, one]), [400, 'invalid_transaction'])
  assert.deepEqual(await refused([one], { options: { isolation_level: 'chaos' } }), [
    400,
    'invalid_transaction',
  ])
  assert.deepEqual(await refused([insert('a', 'entry', {})], { options: { read_only: true } }), [
    400,
    'invalid_transaction',
  ])
  assert.deepEqual(await refused([update('a', 1, {})]), [400, 'empty_write'])
  assert.deepEqual(await refused(Array.from({ length: 101 }, (_, index) => ({ ...one, id: `${index}` }))), [
    400,
    'too_many_operations',
  ])
  assert.deepEqual(await refused([one], { key: 'x'.repeat(256) }), [400, 'invalid_idempotency_key'])
  assert.deepEqual(await refused([one], { key: 'one', idempotency_key: 'other' }), [
    400,
    'invalid_idempotency_key',
  ])
})

test('results above the memory limit are rejected and rolled back', async () => {
  const operations = [
    insert('new', 'account', { id: 5, owner: 'E', balance: 1 }),
    fetchAll('a', 'large'),
    fetchAll('b', 'large'),
  ]
  const answer = await run(all, operations)
  assert.deepEqual([answer.status, answer.body.code], [413, 'result_too_large'])
  assert.deepEqual(await rowsOf('select from account where id = 5'), [])
})

test('a transaction that was reported as timed out is not committed later', async () => {
  const hasty = await testService({ config: { limits: { timeout: 1_500 } } })
  const writer = await hasty.key(['gateway.write'])
  const on = (text: string) => withClient(hasty.clientUrl, (client) => client.query(text))
  await on(`
    create table slow (id int primary key);
    create function sleep() returns trigger language plpgsql as $$ begin
      if new.id > 1 then perform pg_sleep(0.5); end if; return new; end $$;
    create trigger sleep before insert on slow for each row execute function sleep()`)
  const quick = await run(writer, [insert('a', 'slow', { id: 1 })])
  assert.equal(quick.status, 200, quick.text)
  const slow = [2, 3, 4, 5].map((id) => insert(`${id}`, 'slow', { id }))
  const answer = await run(writer, slow)
  assert.ok(answer.status >= 500, answer.text)
  await hasty.stop()
  assert.deepEqual((await on('select id from slow')).rows, [{ id: 1 }])
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

test('a transaction whose caller loses the right to read while it waits for a lock answers no row, and writes none', async () => {
  const key = await t.key(['secret.read', 'secret.write'])
  const asked = await withClient(t.clientUrl, async (client) => {
    await client.query('begin; lock table secret in exclusive mode')
    const waiters = `select from ${OWN_LOCKS} where not granted`
    const asked = run(key, [insert('a', 'secret', { word: 'new' })])
    while (((await client.query(waiters)).rowCount ?? 0) === 0) await sleep(10)
    await t.admin.send('PATCH', `/admin/api-keys/${key.keyId}`, { body: { rights: ['secret.write'] } })
    await client.query('commit')
    return asked
  })
  assert.deepEqual([asked.status, asked.body.code], [409, 'write_conflict'])
  assert.deepEqual(await rowsOf('select word from secret'), [{ word: 'hush' }])
})
