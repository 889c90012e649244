import assert from 'node:assert/strict'
import { type ClientRequest, request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
await sql(`
  create table note (id int primary key, text text);
  create table slept (id int primary key, text text);
  create table locked (id int primary key, text text);
  insert into note values (1, 'one');
  insert into slept select n, 'as it was' from generate_series(1, 20) n;
  insert into locked values (1, 'one');
  create function sleeps() returns trigger language plpgsql as $$ begin perform pg_sleep(20); return coalesce(new, old); end $$;
  create trigger sleeps before insert or update or delete on slept for each row execute function sleeps();
  create view slow as select 1 as id, pg_sleep(20)::text as text;
  create view late as select n as id, repeat('x', 20000) as text, case when n > 200 then pg_sleep(20)::text end as slept
    from generate_series(1, 1000) n;
  create function slow_call() returns int language sql as $$ select 1 from pg_sleep(20) $$`)

/** A proxy that delays cancel requests by half a second. */
const slowWay = await slowCancelling(database.url)
await sql(`
  create table brief (id int primary key, text text);
  insert into brief values (1, 'as it was');
  create function naps() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return new; end $$;
  create trigger naps before update on brief for each row execute function naps()`)

const wide = { url: database.url, max_connections: 10, sql_connections: 10 }
const t = await testService({
  config: {
    clients: {
      wide,
      same: wide,
      far: { url: slowWay.url, max_connections: 1, statement_timeout: 1_500 },
    },
    gateway: { cache: { ttl: 0 } },
  },
})
after(async () => {
  await t.stop()
  slowWay.close()
  await database.drop()
})
const key = await t.key(['*'], { client_name: 'wide' })
const headers = { ...key.headers, 'x-service-client': 'wide', 'content-type': 'application/json' }

async function slowCancelling(url: string): Promise<{ readonly url: string; close(): void }> {
  const { hostname, port } = new URL(url)
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy())
    socket.once('data', async (first: Buffer) => {
      socket.pause()
      if (first.readUInt32BE(4) === 80_877_102) await sleep(500)
      const behind = connect(Number(port), hostname)
      behind.on('error', () => socket.destroy())
      socket.on('close', () => behind.destroy())
      behind.write(first)
      socket.pipe(behind).pipe(socket)
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const changed = new URL(url)
  changed.host = `127.0.0.1:${(server.address() as AddressInfo).port}` // the address of a TCP server
  return { url: changed.href, close: () => void server.close() }
}

type Call = { readonly method?: string; readonly path: string; readonly body: object }

/** Sends a request without waiting for the response. */
function begin({ method = 'POST', path, body }: Call): ClientRequest {
  const sent = request(new URL(path, t.url), { method, headers, agent: false })
  sent.on('error', () => {})
  sent.end(JSON.stringify(body))
  return sent
}

const running = async (): Promise<number> => {
  const [{ count }] = await sql(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name = 'gatehouse wide' and state <> 'idle'`,
  )
  return count
}

async function until(what: () => Promise<boolean> | boolean, milliseconds: number): Promise<boolean> {
  const end = performance.now() + milliseconds
  while (!(await what())) {
    if (performance.now() > end) return false
    await sleep(10)
  }
  return true
}

const poolOf = async () => {
  const { body } = await t.admin.get('/admin/clients')
  return body.data.runtime.find((client: { client_name: string }) => client.client_name === 'wide').pool
}

const isIdle = async () => {
  const { total, idle, waiting } = await poolOf()
  return total === idle && waiting === 0
}

/** Far before the statements would end by themselves, milliseconds: a busy machine may need seconds. */
const EARLY = 10_000

/** Starts ten callers, waits until their statements run, and disconnects them. */
async function tenLeave(call: (index: number) => Call): Promise<void> {
  const sent = Array.from({ length: 10 }, (_, index) => begin(call(index)))
  assert.ok(await until(async () => (await running()) === 10, 10_000), `10 run: ${await running()}`)
  for (const one of sent) one.destroy()
  assert.ok(await until(async () => (await running()) === 0, EARLY), 'a statement still runs')
  assert.ok(await until(isIdle, EARLY), `a connection was not released: ${JSON.stringify(await poolOf())}`)
  const answer = await key.get('/data?view=note&eq_column=text&eq_value=one', { headers })
  assert.equal(answer.status, 200, answer.text)
}

const payload = { table_name: 'slow' }
const byId = (index: number) => [{ eq_column: 'id', eq_value: index + 1 }]
const write = { table_name: 'slept', set: { text: 'changed' } }

const PATHS: Readonly<Record<string, (index: number) => Call>> = {
  'a fetch': () => ({ path: '/gateway/fetch', body: payload }),
  'a fetch with its count': () => ({ path: '/gateway/fetch', body: { ...payload, count: 'exact' } }),
  'a fetch of the count alone': () => ({
    path: '/gateway/fetch',
    body: { ...payload, count: 'exact', head: true, conditions: [{ eq_column: 'text', eq_value: '' }] },
  }),
  'a fetch with groups': () => ({ path: '/gateway/fetch', body: { ...payload, group_by: 'id' } }),
  'a count': () => ({
    path: '/query/count',
    body: { ...payload, conditions: [{ eq_column: 'text', eq_value: '' }] },
  }),
  'a fetch whose first rows are on their way': () => ({
    path: '/gateway/fetch',
    body: { table_name: 'late' },
  }),
  'an insert': (index) => ({
    path: '/gateway/insert',
    body: { table_name: 'slept', insert_body: { id: 100 + index } },
  }),
  'an update': (index) => ({ path: '/gateway/update', body: { ...write, conditions: byId(index) } }),
  'a delete': (index) => ({
    path: '/gateway/delete',
    body: { table_name: 'slept', conditions: byId(index) },
  }),
  'a transaction': (index) => ({
    path: '/gateway/transaction',
    body: {
      operations: [
        { id: 'a', kind: 'insert', payload: { table_name: 'note', insert_body: { id: 100 + index } } },
        { id: 'b', kind: 'fetch', payload },
      ],
    },
  }),
  'a transaction under a key': (index) => ({
    path: '/gateway/transaction',
    body: { idempotency_key: `k${index}`, operations: [{ id: 'b', kind: 'fetch', payload }] },
  }),
  SQL: () => ({ path: '/gateway/query', body: { query: 'select pg_sleep(20)' } }),
  'a function': () => ({ path: '/gateway/rpc', body: { function: 'slow_call' } }),
}

for (const [name, call] of Object.entries(PATHS))
  test(`disconnecting ten callers of ${name} releases their connections at once and leaves no partial writes`, async () => {
    await tenLeave(call)
    const rows = await sql(`select (select count(*)::int from note) as notes,
      (select count(*)::int from slept where text = 'as it was') as slept, (select count(*)::int from slept) as all_slept`)
    assert.deepEqual(rows, [{ notes: 1, slept: 20, all_slept: 20 }])
  })

test('disconnecting ten callers that wait for a locked row releases their connections at once', async () => {
  await withClient(database.url, async (client) => {
    await client.query('begin; lock table locked in access exclusive mode')
    const calls = Array.from({ length: 10 }, () =>
      begin({ path: '/gateway/fetch', body: { table_name: 'locked', conditions: byId(0) } }),
    )
    assert.ok(await until(async () => (await running()) > 0, 5_000))
    for (const call of calls) call.destroy()
    assert.ok(await until(async () => (await running()) === 0, EARLY), `${await running()} run`)
    assert.ok(await until(isIdle, EARLY), JSON.stringify(await poolOf()))
    await client.query('rollback')
  })
})

test('callers that disconnect while waiting for a connection do not delay others', async () => {
  const running10 = Array.from({ length: 10 }, () => begin({ path: '/gateway/fetch', body: payload }))
  assert.ok(await until(async () => (await running()) === 10, 10_000))
  const waiting = Array.from({ length: 30 }, () => begin({ path: '/gateway/fetch', body: payload }))
  assert.ok(await until(async () => (await poolOf()).waiting === 30, 5_000))
  for (const one of waiting) one.destroy()
  assert.ok(await until(async () => (await poolOf()).waiting === 0, EARLY))
  for (const one of running10) one.destroy()
  assert.ok(await until(async () => (await running()) === 0, EARLY))
})

test('a caller that disconnects during an insert window does not insert its rows; others do', async () => {
  const insert = (id: number) => ({
    path: '/gateway/insert',
    body: { table_name: 'note', insert_body: { id } },
  })
  const window = { ...headers, 'x-service-insert-window': '1000' }
  const stays = key.send('PUT', '/gateway/insert', { headers: window, body: insert(200).body })
  const leaves = request(new URL('/gateway/insert', t.url), { method: 'POST', headers: window, agent: false })
  leaves.on('error', () => {})
  leaves.end(JSON.stringify(insert(201).body))
  await sleep(100)
  leaves.destroy()
  assert.equal((await stays).status, 200)
  assert.deepEqual(await sql('delete from note where id >= 200 returning id'), [{ id: 200 }])
})

test("a late cancel request does not hit another caller's statement", async () => {
  const far = { ...key.headers, 'x-service-client': 'far', 'content-type': 'application/json' }
  const farKey = await t.key(['*'], { client_name: 'far' })
  const ask = { headers: { ...far, apikey: farKey.apiKey } }
  const warm = await farKey.post('/query/count', { table_name: 'brief' }, ask)
  assert.equal(warm.status, 200, warm.text)
  const sent = request(new URL('/gateway/update', t.url), {
    method: 'POST',
    headers: ask.headers,
    agent: false,
  })
  sent.on('error', () => {})
  sent.end(JSON.stringify({ ...write, conditions: byId(0) }))
  await sleep(1_200)
  sent.destroy()
  // This request waits for the only connection, which the statement timeout releases; then the cancel request arrives.
  const other = await farKey.post(
    '/gateway/update',
    { table_name: 'brief', set: { text: 'changed' }, conditions: byId(0) },
    ask,
  )
  assert.equal(other.status, 200, other.text)
})
