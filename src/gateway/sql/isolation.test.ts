import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { OWN_LOCKS } from '#test/database.ts'
import { type Actor, actor, testService } from '#test/harness.ts'

const t = await testService()
const full = await t.key(['gateway.query', 'gateway.read'])
const observer = new pg.Client({ connectionString: t.clientUrl })

before(async () => {
  await observer.connect()
  await observer.query(`
    create table item (id int primary key, word text);
    insert into item select n, 'word ' || n from generate_series(1, 50) n`)
})
test.after(() => observer.end())

const sql = (who: Actor, query: string) => who.post('/gateway/query', { query })

test('session state of one caller does not affect the next one on the same connection', async () => {
  const hostile = [
    `set role pg_monitor`,
    `set search_path to nowhere; set timezone to 'Asia/Tokyo'; set statement_timeout to 1`,
    `create temp table item (id int); insert into item values (666)`,
    `select pg_advisory_lock(42)`,
    `prepare p as select 1; listen channel; declare c cursor with hold for select 1`,
    `set client_encoding to 'LATIN1'`,
    `set default_transaction_read_only to on`,
    `set session authorization default; set session characteristics as transaction isolation level serializable`,
  ]
  for (const query of hostile) {
    await Promise.all(Array.from({ length: 4 }, () => sql(full, query)))
    const [seen] = (
      await sql(
        full,
        `select current_user = session_user as own, current_setting('search_path') as path, current_setting('TimeZone') as zone,
          (select count(*) from item) as rows, (select count(*) from pg_prepared_statements) as prepared,
          (select count(*) from pg_cursors where is_holdable) as cursors, current_setting('client_encoding') as encoding,
          current_setting('default_transaction_read_only') as ro, current_setting('statement_timeout') as timeout`,
      )
    ).body.data
    assert.deepEqual(
      seen,
      {
        own: true,
        path: '"$user", public',
        zone: 'UTC',
        rows: 50,
        prepared: 0,
        cursors: 0,
        encoding: 'UTF8',
        ro: 'off',
        timeout: '30s',
      },
      query,
    )
    const locks = await observer.query(
      `select count(*)::int as held from ${OWN_LOCKS} where locktype = 'advisory'`,
    )
    assert.equal(locks.rows[0]?.held, 0)
  }
})

test('a response in another encoding is rejected', async () => {
  const answer = await sql(full, `begin; set local client_encoding = 'LATIN1'; select 'é' as e; commit`)
  assert.ok([200, 400].includes(answer.status), answer.text)
  const last = await sql(full, `set client_encoding = 'LATIN1'; select U&'\\00e9' as e`)
  assert.deepEqual([last.status, last.body.code], [400, 'not_supported'])
  assert.equal((await sql(full, `select 'é' as e`)).body.data[0].e, 'é')
})

test('the statement of a disconnected caller is cancelled', async () => {
  const controller = new AbortController()
  const query = fetch(`${t.url}/gateway/query`, {
    method: 'POST',
    signal: controller.signal,
    headers: { ...full.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ query: 'set statement_timeout to 0; select pg_sleep(100) as abandoned' }),
  })
  await until(async () => (await running('abandoned')) === 1)
  controller.abort()
  await assert.rejects(query)
  await until(async () => (await running('abandoned')) === 0)
})

test('a flood of notices or a terminated backend does not affect other callers', async () => {
  const flood = await sql(
    full,
    `do $$ begin for i in 1..20000 loop raise notice 'flood %', i; end loop; end $$; select 1 as one`,
  )
  assert.deepEqual(flood.body.data, [{ one: 1 }])
  const dead = await sql(full, 'select pg_terminate_backend(pg_backend_pid())')
  assert.equal(dead.status, 502)
  assert.equal((await sql(full, 'select 1')).status, 200)
})

test('200 concurrent queries use four connections and do not delay data reads', async () => {
  let answered = 0
  const slow = Array.from({ length: 200 }, () => sql(full, 'select pg_sleep(0.05)').finally(() => answered++))
  let most = 0
  for (let round = 0; round < 5 || (most === 0 && answered < 190); round++) {
    assert.equal((await full.post('/gateway/fetch', { table_name: 'item', limit: 1 })).status, 200)
    most = Math.max(most, await running('pg_sleep(0.05)'))
  }
  assert.ok(answered < 190, `${answered} had been answered before the reads`)
  assert.ok(most > 0 && most <= 4, `${most} at once`)
  assert.ok((await Promise.all(slow)).every(({ status }) => status === 200))
})

test('a statement that disables its timeout is cancelled from outside, even if it catches the cancellation', async () => {
  const short = await testService({
    config: { clients: { brief: { url: t.clientUrl, statement_timeout: 500 } } },
  })
  const key = await short.key(['gateway.query'], { client_name: 'brief' })
  const own = actor(short.url, { apikey: key.apiKey, 'x-service-client': 'brief' })
  const stubborn = `do $$ begin loop begin perform pg_sleep(100); exception when query_canceled then null; end; end loop; end $$`
  for (const query of [
    'select pg_sleep(100)',
    'set statement_timeout to 0; select pg_sleep(100)',
    `set statement_timeout to 0; ${stubborn}`,
  ]) {
    const began = performance.now()
    const answer = await sql(own, query)
    assert.deepEqual([answer.status, answer.body.code], [504, 'statement_timeout'], answer.text)
    assert.ok(performance.now() - began < 50_000)
  }
  await until(async () => (await running('pg_sleep(100)')) === 0)
})

async function running(text: string): Promise<number> {
  const { rows } = await observer.query(
    `select count(*)::int as n from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state = 'active' and query like '%' || $1 || '%'`,
    [text],
  )
  return rows[0]?.n
}

async function until(check: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 100; round++) {
    if (await check()) return
    await sleep(100)
  }
  assert.fail('the condition did not hold in time')
}
