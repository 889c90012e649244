import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type Actor, testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['gateway.read', 'gateway.write'])

const sql = (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)

before(() =>
  sql(`
    create table item (id int primary key, name text, statement bigint);
    create sequence statements;
    create function count_statement() returns trigger language plpgsql as $$ begin perform nextval('statements'); return null; end $$;
    create trigger counted before insert on item for each statement execute function count_statement();
    create function drop_odd() returns trigger language plpgsql as $$ begin if new.id % 2 = 1 then return null; end if; return new; end $$;
    create table picky (id int primary key, name text);
    create trigger picky before insert on picky for each row execute function drop_odd();
    create function refuse_odd() returns trigger language plpgsql as $$ begin
      if new.id % 2 = 1 then raise exception 'odd' using errcode = new.state; end if; return new;
    end $$;
    create table strict (id int primary key, state text);
    create trigger strict before insert on strict for each row execute function refuse_odd()`),
)

const events: number[] = []
t.service.kernel.events.subscribe((name, data) => {
  if (name === 'gateway_insert' && 'affected_rows' in data) events.push(data.affected_rows)
})

/** Counts the statements that the work runs on table item. */
async function statements(work: () => Promise<unknown>): Promise<number> {
  const count = async () =>
    Number((await sql(`select last_value - case when is_called then 0 else 1 end as n from statements`))[0].n)
  const first = await count()
  await work()
  return (await count()) - first
}

const insert = (window: string | undefined, body: object, who: Actor = key) =>
  who.send('PUT', '/gateway/insert', {
    body: { table_name: 'item', ...body },
    headers: window === undefined ? {} : { 'x-service-insert-window': window },
  })

/** A window that ends when the batch has ten thousand rows, whatever time a busy machine needs until then. */
const LONG = '60000'
const FULL = 10_000

/** The id, and others that no test has. */
const rowsWith = (id: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: index === 0 ? id : id * 1_000 + index }))

/** Ends the batch of the inserts of ids that have come before. */
const fill = (from: number, who: Actor = key, more: object = {}) => {
  const insert_body = Array.from({ length: FULL }, (_, index) => ({ id: from + index }))
  return insert(LONG, { insert_body, ...more }, who)
}

test('inserts of one window run as one statement, and each caller gets its own rows', async () => {
  events.length = 0
  const SHARE = FULL / 20
  const rows = (index: number) =>
    Array.from({ length: SHARE }, (_, row) => ({
      id: 100_000 + index * SHARE + row,
      name: row % 2 === 0 ? `n${index}` : '{"[,]}\\',
    }))
  const ran = await statements(async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        insert(LONG, { insert_body: rows(index), columns: 'id,name' }),
      ),
    )
    answers.forEach(({ status, body, text }, index) => {
      assert.equal(status, 200, text)
      assert.deepEqual([body.message, body.affected_rows], ['Data inserted successfully', SHARE])
      assert.deepEqual(body.data, rows(index))
    })
  })
  assert.equal(ran, 1)
  assert.deepEqual(events, Array(20).fill(SHARE))
})

test('only inserts of the same form are batched', async () => {
  const admin = { ...t.admin.headers, 'x-service-client': 'default' }
  const ran = await statements(() =>
    Promise.all([
      insert('5000', { insert_body: { id: 1_000 } }),
      insert('5000', { insert_body: { id: 1_001 } }),
      t.admin.send('PUT', '/gateway/insert', {
        body: { table_name: 'item', insert_body: { id: 1_002 } },
        headers: { ...admin, 'x-service-insert-window': '5000' },
      }),
      insert('5000', { insert_body: { id: 1_003, name: 'x' } }),
      insert('5000', { insert_body: { id: 1_004 }, columns: 'id' }),
      insert('5000', { insert_body: { id: 1_005 }, on_conflict: 'id' }),
      insert('5000', { insert_body: { id: 1_006 }, head: true }),
      insert(undefined, { insert_body: { id: 1_007 } }),
    ]),
  )
  assert.equal(ran, 6)
  assert.equal((await sql('select from item where id between 1000 and 1007')).length, 8)
})

test('if the batch fails, each insert runs alone and only invalid ones fail', async () => {
  const bodies = [{ id: 2_000 }, { id: 2_001 }, { id: 2_000 }, { id: 'x' }, { id: 2_002 }]
  const answers = await Promise.all(bodies.map((insert_body) => insert('150', { insert_body })))
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.code]).sort(),
    [
      [200, undefined],
      [200, undefined],
      [200, undefined],
      [409, 'unique_violation'],
      [422, 'invalid_value'],
    ].sort(),
  )
  assert.equal((await sql('select from item where id between 2000 and 2002')).length, 3)
})

test('a row that a trigger refuses with any SQLSTATE fails no other insert of the batch', async () => {
  for (const state of ['PT409', '28000', '53400']) {
    await sql('truncate strict')
    const answers = await Promise.all(
      [2, 3, 4].map((id) => insert('150', { table_name: 'strict', insert_body: { id, state } })),
    )
    assert.deepEqual(
      answers.map(({ body }) => body.code),
      [undefined, 'rejected_by_database', undefined],
    )
    assert.deepEqual(await sql('select id from strict order by id'), [{ id: 2 }, { id: 4 }])
  }
})

test('if the batch skips rows, each caller still gets its own result and no row is written twice', async () => {
  const upserts = await Promise.all(
    [3_000, 3_000, 3_001].map((id) =>
      insert('400', { insert_body: { id }, on_conflict: 'id', columns: 'id' }),
    ),
  )
  assert.deepEqual(upserts.map(({ body }) => body.affected_rows).sort(), [0, 1, 1])
  const picky = await Promise.all(
    [1, 2, 3, 4].map((id) => insert('400', { table_name: 'picky', insert_body: { id } })),
  )
  assert.deepEqual(
    picky.map(({ body }) => body.data),
    [[], [{ id: 2, name: null }], [], [{ id: 4, name: null }]],
  )
  assert.equal((await sql('select from picky')).length, 2)
})

test('a window ends after the shortest wait of its callers', async () => {
  const began = performance.now()
  const answers = await Promise.all([
    insert('60000', { insert_body: { id: 4_000 } }),
    insert('100', { insert_body: { id: 4_001 } }),
  ])
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200],
  )
  assert.ok(performance.now() - began < 10_000)
})

test('a full window ends at once', async () => {
  const rows = (from: number) => Array.from({ length: 5_000 }, (_, index) => ({ id: from + index }))
  const answers = await Promise.all(
    [10_000, 15_000].map((from) => insert('60000', { insert_body: rows(from), columns: 'id' })),
  )
  assert.deepEqual(
    answers.map(({ body }) => [body.affected_rows, body.data[0].id]),
    [
      [5_000, 10_000],
      [5_000, 15_000],
    ],
  )
})

test('rights are checked before waiting, and an invalid window is rejected', async () => {
  const reader = await t.key(['gateway.read'])
  assert.equal((await insert('60000', { insert_body: { id: 5_000 } }, reader)).status, 403)
  for (const window of ['0', '60001', '-1', '1.5', 'soon', '1e3']) {
    const answer = await insert(window, { insert_body: { id: 5_000 } })
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_insert_window'], window)
  }
  assert.equal((await sql('select from item where id = 5000')).length, 0)
})

test('if the connection is lost during a batch, no caller gets success and nothing is retried', async () => {
  const answers = await withClient(t.clientUrl, async (client) => {
    await client.query('begin; insert into item values (7000)')
    // Together they are more than ten thousand rows, and the first two are less.
    const inserts = [7_000, 30_000, 40_000].map((id) => insert(LONG, { insert_body: rowsWith(id, 4_000) }))
    const waiting = Promise.all(inserts)
    const kill = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like 'insert into "public"."item"%'`
    while ((await sql(kill)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    await client.query('rollback')
    return waiting
  })
  assert.deepEqual(
    answers.map(({ body }) => body.code),
    Array(3).fill('connection_lost'),
  )
  assert.equal((await sql('select from item where id in (7000, 30000, 40000)')).length, 0)
})

test('a key that is revoked while the inserts of its batch run inserts nothing by itself afterwards', async () => {
  const revoked = await t.key(['gateway.*'])
  const [taken, lost] = await withClient(t.clientUrl, async (client) => {
    await client.query('begin; insert into item values (7100)')
    const asked = [
      insert(LONG, { insert_body: rowsWith(7_100, FULL / 2) }),
      insert(LONG, { insert_body: rowsWith(7_101, FULL / 2) }, revoked),
    ]
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'insert into "public"."item"%'`
    await eventually(async () => (await sql(waiting)).length > 0)
    await t.admin.send('DELETE', `/admin/api-keys/${revoked.keyId}`)
    await client.query('commit')
    return Promise.all(asked)
  })
  assert.deepEqual([taken?.body.code, lost?.body.code], ['unique_violation', 'invalid_api_key'])
  assert.deepEqual(await sql('select id from item where id between 7100 and 7101'), [{ id: 7_100 }])
})

test('an insert whose key is revoked or whose client is frozen while it waits is refused, and others are stored', async () => {
  const registered = { client_name: 'frozen', driver: 'postgresql', url: t.clientUrl }
  assert.equal((await t.admin.post('/admin/clients', registered)).status, 201)
  const revoked = await t.key(['gateway.*'])
  const ofFrozen = await t.key(['gateway.*'], { client_name: 'frozen' })
  events.length = 0
  const answers = [
    insert(LONG, { insert_body: { id: 200_001 } }, revoked),
    insert(LONG, { insert_body: { id: 200_002 } }),
    ofFrozen.send('PUT', '/gateway/insert', {
      body: { table_name: 'item', insert_body: { id: 200_003 } },
      headers: { 'x-service-client': 'frozen', 'x-service-insert-window': '5000' },
    }),
  ]
  await sleep(100)
  await t.admin.send('DELETE', `/admin/api-keys/${revoked.keyId}`)
  await t.admin.send('PUT', '/admin/clients/frozen/freeze', { body: { is_frozen: true } })
  const filled = await fill(210_000)
  assert.equal(filled.status, 200)
  const codes = (await Promise.all(answers)).map(({ status, body }) => [status, body.code])
  assert.deepEqual(codes, [
    [401, 'invalid_api_key'],
    [200, undefined],
    [403, 'client_frozen'],
  ])
  assert.deepEqual(await sql('select id from item where id between 200001 and 200003'), [{ id: 200_002 }])
  assert.deepEqual(
    events.toSorted((a, b) => a - b),
    [1, FULL],
  )
})

test('a caller who loses the right to read while the batch waits gets no row back, and another one does', async () => {
  await sql('create table told (id int primary key, secret text default $$hidden$$)')
  const rights = ['told.read', 'told.write']
  for (const isFirst of [true, false]) {
    const [loses, keeps] = [await t.key(rights), await t.key(rights)]
    const order = isFirst ? [loses, keeps] : [keeps, loses]
    const asked = order.map((who, index) =>
      insert(LONG, { table_name: 'told', insert_body: { id: Number(isFirst) * 10 + index } }, who),
    )
    await sleep(300)
    await t.admin.send('PATCH', `/admin/api-keys/${loses.keyId}`, { body: { rights: ['told.write'] } })
    await fill(100_000 * (1 + Number(isFirst)), keeps, { table_name: 'told' })
    const found = (await Promise.all(asked)).map(({ body }) => body.data.length)
    assert.deepEqual(found, isFirst ? [0, 1] : [1, 0])
  }
})
