import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'

const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
await sql(`create table kept (id int, text text, slept text);
  create view slow as select n as id, repeat('x', 20000) as text, case when n % 50 = 0 then pg_sleep(0.1)::text end as slept
    from generate_series(1, 2000) n;
  create view stuck as select n as id, repeat('x', 20000) as text, case when n > 500 then pg_sleep(20)::text end as slept
    from generate_series(1, 1000) n`)
const t = await testService({
  config: {
    clients: { app: { url: database.url, max_connections: 2 } },
  },
})
const hasty = await testService({
  config: {
    clients: { app: { url: database.url, max_connections: 2 } },
    gateway: { pipelines: { timeout: 3_000 } },
  },
})
after(async () => {
  await Promise.all([t.stop(), hasty.stop()])
  await database.drop()
})
const key = await t.key(['*'], { client_name: 'app' })
const headers = { ...key.headers, 'x-service-client': 'app' }
const stored = async () => Number((await sql('select count(*) from kept'))[0].count)
const body = (source: string) => ({ source: { table_name: source }, sink: { table_name: 'kept' } })

async function noStatementRuns(): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const [{ count }] = await sql(
      `select count(*) from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`,
    )
    if (count === '0') return
    await sleep(50)
  }
  assert.fail('a statement still runs')
}

test('a run stops after its batch when the caller leaves', async () => {
  const leave = new AbortController()
  const answer = fetch(new URL('/pipelines', t.url), {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body('slow')),
    signal: leave.signal,
  })
  answer.catch(() => {})
  while ((await stored()) === 0) await sleep(20)
  leave.abort()
  await assert.rejects(answer)
  await noStatementRuns()
  const rows = await stored()
  assert.ok(rows > 0 && rows < 2_000, `${rows} rows`)
  await sleep(200)
  assert.equal(await stored(), rows)
})

test('a run that takes too long ends, and says what it has stored', async () => {
  await sql('truncate kept')
  const { apiKey } = await hasty.key(['*'], { client_name: 'app' })
  const answer = await actor(hasty.url, { apikey: apiKey, 'x-service-client': 'app' }).post(
    '/pipelines',
    body('stuck'),
  )
  assert.deepEqual([answer.status, answer.body.code], [504, 'pipeline_timeout'])
  const { rows_inserted, rows_fetched } = answer.body.data.details
  assert.equal(rows_inserted, await stored())
  assert.ok(rows_inserted > 0 && rows_fetched >= rows_inserted)
  await noStatementRuns()
})

test('a key that is revoked during a run ends it before the next batch', async () => {
  await sql('truncate kept')
  const other = await t.key(['*'], { client_name: 'app' })
  const running = other.post('/pipelines', body('slow'), { headers: { 'x-service-client': 'app' } })
  while ((await stored()) === 0) await sleep(20)
  await t.admin.send('PATCH', `/admin/api-keys/${other.keyId}`, { body: { is_active: false } })
  const before = await stored()
  const { status, body: refused } = await running
  assert.deepEqual([status, refused.code], [401, 'inactive_api_key'])
  const rows = await stored()
  assert.equal(refused.data.details.rows_inserted, rows)
  // The batch that was being written, and no more.
  assert.ok(rows - before <= 60 && rows < 2_000, `${before}, then ${rows} rows`)
})

test('a run ends while it waits for its source when its key is revoked or its source is frozen', async () => {
  const client_name = 'branch'
  await t.admin.post('/admin/clients', { client_name, url: database.url })
  const ends: readonly (readonly [answer: object, end: (keyId: string) => Promise<unknown>])[] = [
    [
      [401, 'inactive_api_key'],
      (id) => t.admin.send('PATCH', `/admin/api-keys/${id}`, { body: { is_active: false } }),
    ],
    [
      [403, 'client_frozen'],
      () => t.admin.send('PUT', `/admin/clients/${client_name}/freeze`, { body: { is_frozen: true } }),
    ],
  ]
  for (const [refusal, end] of ends) {
    await sql('truncate kept')
    const other = await t.key(['*'], { client_name: 'app', client_overrides: ['*'] })
    const whole = body('stuck')
    const running = other.post(
      '/pipelines',
      { ...whole, source: { ...whole.source, client: client_name } },
      { headers: { 'x-service-client': 'app' } },
    )
    // Its source sleeps for hours now.
    while ((await stored()) < 300) await sleep(20)
    await end(other.keyId)
    const { status, body: refused } = await running
    assert.deepEqual([status, refused.code], refusal)
    assert.equal(refused.data.details.rows_inserted, await stored())
    await noStatementRuns()
  }
})

test('a run without a key ends before the next batch when the client needs one', async () => {
  await sql('truncate kept')
  const enforce = (enforce_api_keys: boolean) =>
    t.admin.send('PUT', '/admin/api-key-clients/app', { body: { enforce_api_keys } })
  await enforce(false)
  const running = t.anon.post('/pipelines', body('slow'), { headers: { 'x-service-client': 'app' } })
  while ((await stored()) === 0) await sleep(20)
  await enforce(true)
  const { status, body: refused } = await running
  assert.deepEqual([status, refused.code], [401, 'api_key_required'])
  assert.equal(refused.data.details.rows_inserted, await stored())
})

test('a run ends when its source or its sink is given another database, which gets no row', async () => {
  const elsewhere = await testDatabase()
  after(() => elsewhere.drop())
  const there = (text: string) => withClient(elsewhere.url, (client) => client.query(text))
  await there(`create table kept (id int, text text, slept text);
    create view slow as select n as id, ''::text as text, ''::text as slept from generate_series(1, 5) n`)
  const moved = await t.key(['*'], { client_name: null })
  for (const end of ['source', 'sink'] as const) {
    await sql('truncate kept')
    const client_name = `moved-${end}`
    const made = await t.admin.post('/admin/clients', { client_name, url: database.url })
    assert.equal(made.status, 201, made.text)
    const whole = body('slow')
    const running = moved.post(
      '/pipelines',
      { ...whole, [end]: { ...whole[end], client: client_name } },
      { headers: { 'x-service-client': 'app' } },
    )
    while ((await stored()) === 0) await sleep(20)
    await t.admin.send('PATCH', `/admin/clients/${client_name}`, { body: { url: elsewhere.url } })
    const { status, body: refused } = await running
    assert.deepEqual([status, refused.code], [409, 'client_changed'], end)
    const { step, client } = refused.data.details
    assert.deepEqual([step, client], [end, client_name])
    const rows = await stored()
    assert.equal(refused.data.details.rows_inserted, rows)
    assert.ok(rows < 2_000, `${rows} rows`)
    assert.equal((await there('select from kept')).rowCount, 0)
  }
})

test('a run ends when the service stops, and says what it has stored', async () => {
  await sql('truncate kept')
  const running = key.post('/pipelines', body('slow'), { headers })
  while ((await stored()) === 0) await sleep(20)
  const [{ status, body: ended }] = await Promise.all([running, t.stop()])
  assert.deepEqual([status, ended.code], [503, 'pipeline_stopped'])
  const rows = await stored()
  assert.equal(ended.data.details.rows_inserted, rows)
  assert.ok(rows < 2_000, `${rows} rows`)
})
