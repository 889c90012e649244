import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startCrashableServer } from '#test/crashable-server.ts'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { testService } from '#test/harness.ts'

const SCHEMA = `
  create table note (id int primary key, text text);
  create table gate (id int primary key, opened int);
  create view flood as select n as id, repeat('x', 1000) as text from generate_series(1, 100000) as n;
  insert into note values (0, 'first');
  insert into gate values (1, 0)`

/** Milliseconds. A request that waited for this timeout stands out in the measurements. */
const CONNECT_TIMEOUT = 5_000
/** Milliseconds. A busy machine may need a second to connect. */
const CURT = 2_000
const CONNECTIONS = 4

const [near, far] = [
  await startCrashableServer({ after }, SCHEMA),
  await startCrashableServer({ after }, SCHEMA),
]
const t = await testService({
  config: {
    gateway: { max_rows: 100_000 },
    clients: {
      near: { url: near.url, connect_timeout: 60_000 },
      far: { url: far.url, connect_timeout: CONNECT_TIMEOUT, max_connections: CONNECTIONS },
      curt: { url: far.url, connect_timeout: CURT, statement_timeout: CURT, max_connections: CONNECTIONS },
    },
  },
})
const key = await t.key(['*'], { client_name: null })

const insert = (client: string, id: number) =>
  key.send('PUT', '/gateway/insert', {
    body: { table_name: 'note', insert_body: { id, text: 'x' }, columns: 'id' },
    headers: { 'x-service-client': client },
  })
const read = (client: string) =>
  key.post(
    '/gateway/fetch',
    { table_name: 'note', conditions: [{ column: 'id', value: 0 }] },
    { headers: { 'x-service-client': client } },
  )

type Tried = {
  /** Id of the inserted row; undefined for a read. */
  readonly id: number | undefined
  readonly status: number
  readonly code: string
  readonly retryAfter: string | null
  /** Duration in milliseconds. */
  readonly took: number
}

let lastId = 0

/** Starts callers that alternate inserts and reads as fast as they get responses, until `stop`. */
function load(client: string, callers: number): { tried: Tried[]; stop(): Promise<void> } {
  const tried: Tried[] = []
  let isStopped = false
  const call = async (id: number | undefined) => {
    const began = performance.now()
    const { status, body, headers } = await (id === undefined ? read(client) : insert(client, id))
    const took = performance.now() - began
    tried.push({ id, status, code: body.code, retryAfter: headers.get('retry-after'), took })
  }
  const caller = async () => {
    while (!isStopped) {
      await call(++lastId)
      await call(undefined)
      // Without a pause, callers that get immediate rejections would use up the processor.
      await sleep(5)
    }
  }
  const running = Promise.all(Array.from({ length: callers }, caller))
  return {
    tried,
    async stop() {
      isStopped = true
      await running
    },
  }
}

const isBack = (client: string) => eventually(async () => (await read(client)).status === 200)

const idsWith = (tried: readonly Tried[], status: number): number[] =>
  tried.flatMap(({ id, status: had }) => (had === status && id !== undefined ? [id] : []))

/** Asserts that acknowledged rows exist and rejected ones do not. */
async function outcomesAreTrue(url: string, tried: readonly Tried[]): Promise<void> {
  const ids = await withClient(url, async (client) => (await client.query('select id from note')).rows)
  const existing = new Set(ids.map(({ id }) => id))
  assert.deepEqual(
    idsWith(tried, 200).filter((id) => !existing.has(id)),
    [],
    'lost despite status 200',
  )
  assert.deepEqual(
    idsWith(tried, 503).filter((id) => existing.has(id)),
    [],
    'written despite status 503',
  )
}

/** Asserts that all requests succeeded in time. */
function isUndisturbed(tried: readonly Tried[]): void {
  assert.deepEqual([...new Set(tried.map(({ status }) => status))], [200])
  assert.ok(tried.every(({ took }) => took < CONNECT_TIMEOUT))
}

test('requests to a killed server get 503 at once and succeed after its restart; other clients are not disturbed', async () => {
  const callers = 8
  for (const client of ['near', 'far']) await isBack(client)
  const loads = { near: load('near', 2), far: load('far', callers) }
  const answered = (count: number) => eventually(() => loads.far.tried.length > count)
  await answered(callers * 3)
  const { length: before } = loads.far.tried
  await far.kill()
  const { length: killed } = loads.far.tried
  await answered(killed + callers * 3)
  const { length: down } = loads.far.tried
  await far.start()
  await isBack('far')
  await sleep(500)
  await Promise.all([loads.near.stop(), loads.far.stop()])

  const { tried } = loads.far
  assert.ok(before > 0 && tried.slice(0, before).every(({ status }) => status === 200))
  assert.equal(tried.at(-1)?.status, 200)
  const refused = tried.filter(({ status }) => status === 503)
  const broken = tried.filter(({ status }) => status === 502)
  assert.equal(
    refused.length + broken.length + tried.filter(({ status }) => status === 200).length,
    tried.length,
  )
  for (const { code, retryAfter } of refused)
    assert.ok(code === 'client_unavailable' && /^[1-9]\d*$/.test(retryAfter ?? ''), `${code} ${retryAfter}`)
  // Only requests in progress.
  assert.ok(broken.length <= callers + CONNECTIONS, `${broken.length} broken`)
  const waits = tried.slice(killed, down).map(({ took }) => took)
  assert.ok(
    Math.max(...waits) < CONNECT_TIMEOUT,
    `a response took ${Math.max(...waits)} ms while it was down`,
  )
  await outcomesAreTrue(far.url, tried)
  isUndisturbed(loads.near.tried)
})

test('a silent server delays its callers by their timeouts at most, and is used again when it responds', async () => {
  const callers = 8
  for (const client of ['near', 'curt']) await isBack(client)
  const loads = { near: load('near', 2), curt: load('curt', callers) }
  await sleep(500)
  await far.freeze()
  // The sweeper closes connections that are silent for five seconds beyond the statement timeout, later on a busy machine. Then callers no
  // longer wait: for a second every answer is the same.
  await eventually(async () => {
    const { length: known } = loads.curt.tried
    await sleep(1_000)
    const late = loads.curt.tried.slice(known)
    return late.length > 0 && late.every(({ code }) => code === 'client_unavailable')
  })
  await far.thaw()
  await isBack('curt')
  await Promise.all([loads.near.stop(), loads.curt.stop()])

  const { tried } = loads.curt
  const codes = new Set(tried.filter(({ status }) => status !== 200).map(({ code }) => code))
  assert.deepEqual(
    [
      ...codes.difference(
        new Set(['client_unavailable', 'client_busy', 'connection_lost', 'statement_timeout']),
      ),
    ],
    [],
  )
  assert.ok(tried.every(({ took }) => took < 10_000))
  await outcomesAreTrue(far.url, tried)
  isUndisturbed(loads.near.tried)
})

const asFar = { headers: { 'x-service-client': 'far' } }

test('a transaction is rolled back if the server dies in the middle, and the response says so', async () => {
  await isBack('far')
  const holder = new pg.Client(far.url)
  holder.on('error', () => {}) // the test kills this connection
  await holder.connect()
  await holder.query('begin; select from gate for update')
  const [first, second] = [++lastId, ++lastId]
  const row = (id: number) => ({ table_name: 'note', insert_body: { id } })
  const answer = key.post(
    '/gateway/transaction',
    {
      operations: [
        { id: 'a', kind: 'insert', payload: row(first) },
        {
          id: 'b',
          kind: 'update',
          payload: { table_name: 'gate', set: { opened: 1 }, allow_unbounded: true },
        },
        { id: 'c', kind: 'insert', payload: row(second) },
      ],
    },
    asFar,
  )
  while ((await holder.query(`select from ${OWN_LOCKS} where not granted`)).rowCount === 0) await sleep(10)
  await far.kill()
  const { status, body } = await answer
  assert.deepEqual([status, body.code, body.data.details.operation_id], [502, 'connection_lost', 'b'])
  assert.match(body.error, /nothing of the transaction was done/i)
  await far.start()
  await isBack('far')
  const { rows } = await withClient(far.url, (client) =>
    client.query('select (select count(*) from note where id = any($1)) as notes, opened from gate', [
      [first, second],
    ]),
  )
  assert.deepEqual(rows, [{ notes: '0', opened: 0 }])
})

test('if the server dies during a streamed response, the response is aborted and not valid JSON', async () => {
  await isBack('far')
  const response = await fetch(`${t.url}/gateway/fetch`, {
    method: 'POST',
    headers: { ...key.headers, 'content-type': 'application/json', ...asFar.headers },
    body: JSON.stringify({ table_name: 'flood', limit: 100_000 }),
  })
  assert.equal(response.status, 200)
  const reader = response.body?.getReader()
  assert.ok(reader)
  const parts = [(await reader.read()).value ?? new Uint8Array()]
  await far.kill()
  await assert.rejects(async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value)
  })
  const text = Buffer.concat(parts).toString()
  assert.match(text, /^\{"status":"success","data":\[\{/)
  assert.throws(() => JSON.parse(text), SyntaxError)
  await far.start()
  await isBack('far')
})
