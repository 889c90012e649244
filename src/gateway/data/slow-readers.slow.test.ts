import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createReaderPace } from '#kernel/http/connections/long-responses.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { testClock, testService } from '#test/harness.ts'

const MIB = 1_048_576
const database = await testDatabase()
await withClient(database.url, async (client) => {
  await client.query('create table note (id int primary key, text text)')
  await client.query(`insert into note values (1, 'one')`)
  // Rows of two megabytes and of half a megabyte, which are stored compressed.
  await client.query(
    `create view big as select n as id, repeat('x', 2000000) as text from generate_series(1, 30) n`,
  )
  await client.query(
    `create view long as select n as id, repeat('x', 500000) as text from generate_series(1, 40) n`,
  )
})
const SHORT = 1_000
/** Milliseconds that a caller waits for a connection: a busy machine needs longer than the usual five seconds to make several. */
const connect_timeout = 30_000
const t = await testService({
  // A reader that waits for a busy machine is not slow.
  clock: testClock({ isStopped: true }),
  config: {
    clients: {
      wide: { url: database.url, connect_timeout, max_connections: 10 },
      brief: { url: database.url, connect_timeout, max_connections: 2, statement_timeout: SHORT },
      narrow: { url: database.url, connect_timeout, max_connections: 1 },
    },
  },
})
after(async () => {
  await t.stop()
  await database.drop()
})
const key = await t.key(['*'], { client_name: null })
const on = (client: string) => ({ ...key.headers, 'x-service-client': client })

/** Sends a request and returns the response without reading its body. */
const open = (client: string, view: string, more = {}): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const sent = request(
      new URL('/gateway/fetch', t.url),
      { method: 'POST', headers: { ...on(client), 'content-type': 'application/json' }, agent: false },
      (answer) => resolve(answer.pause()),
    )
    sent.on('error', reject)
    sent.end(JSON.stringify({ table_name: view, ...more }))
  })

async function read(answer: IncomingMessage, pause = 0): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of answer) {
    chunks.push(chunk)
    if (pause > 0) await sleep(pause)
  }
  return Buffer.concat(chunks).toString()
}

const quick = (client: string) =>
  key.get('/data?view=note&eq_column=text&eq_value=one', { headers: on(client) })

test('ten slow readers use at most half of the pool, and get complete responses', async () => {
  const answers = await Promise.all(Array.from({ length: 10 }, () => open('wide', 'long')))
  // Without free connections, these would get 503 after `connect_timeout`.
  const others = await Promise.all(Array.from({ length: 5 }, () => quick('wide')))
  assert.deepEqual(
    others.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  for (const text of await Promise.all(answers.map((answer) => read(answer))))
    assert.equal(JSON.parse(text).data.length, 40)
})

test('a slow reader does not block the only connection of a pool', async () => {
  const answer = await open('narrow', 'long')
  assert.equal((await quick('narrow')).status, 200)
  assert.equal(JSON.parse(await read(answer)).data.length, 40)
})

test('the buffer for slow readers is limited: a response above the limit is aborted and logged', async () => {
  const answer = await open('narrow', 'big')
  assert.equal((await quick('narrow')).status, 200)
  await assert.rejects(read(answer), { code: 'ECONNRESET' })
  assert.equal((await quick('narrow')).status, 200)
})

test('a download may take longer than the statement timeout', async () => {
  const began = performance.now()
  const answer = await open('brief', 'big')
  await sleep(1.5 * SHORT)
  const text = await read(answer)
  assert.equal(JSON.parse(text).data.length, 30)
  assert.ok(text.length > 50 * MIB && performance.now() - began > SHORT)
})

test('a reader that stalls is disconnected, and its database connection is released', async () => {
  const answer = await open('brief', 'big')
  const closed = new Promise((resolve) => answer.once('close', resolve))
  // The time starts when the socket buffers are full, which depends on the operating system. The service checks every second.
  for (let minute = 0; minute < 25; minute++) {
    await sleep(100)
    t.advance(60_000)
  }
  await assert.rejects(read(answer), { code: 'ECONNRESET' })
  await closed
  assert.equal((await quick('brief')).status, 200)
})

test('buffered responses for slow readers share a memory limit, and the slowest are aborted', async () => {
  const slow: { isCut: boolean; answer: IncomingMessage }[] = []
  for (let reader = 0; reader < 16; reader++) {
    const answer = await open('wide', 'long', { count: 'exact' })
    const one = { isCut: false, answer }
    answer.on('error', () => {
      one.isCut = true
    })
    slow.push(one)
  }
  // The limit of eight times `limits.answer` (32 MiB) is 13 responses of 20 MB.
  const quickOne = await read(await open('wide', 'long', { count: 'exact' }))
  assert.equal(JSON.parse(quickOne).count, 40)
  for (const { answer } of slow) answer.resume()
  await Promise.all(
    slow.map(
      ({ answer }) =>
        new Promise((resolve) => (answer.destroyed ? resolve(0) : answer.once('close', resolve))),
    ),
  )
  const cut = slow.filter(({ isCut }) => isCut).length
  assert.ok(cut >= 4 && cut <= 8, `${cut} of 16`)
})

test('a reader at the minimum rate is never disconnected, a reader at half of it within half a minute', () => {
  for (const [rate, isCut] of [
    [16_384, false],
    [20_000, false],
    [8_192, true],
  ] as const) {
    let now = 0
    const pace = createReaderPace(16_384, () => now)
    let cutAt: number | undefined
    for (let piece = 0; piece < 100 && cutAt === undefined; piece++) {
      pace.offer()
      now += (65_536 / rate) * 1_000
      if (pace.isTooSlow()) cutAt = now
      pace.take(65_536)
    }
    assert.equal(cutAt !== undefined, isCut, `${rate}`)
    if (cutAt !== undefined) assert.ok(cutAt <= 30_000, `${cutAt}`)
  }
})

test('the time that the database needs does not count as slow reading', () => {
  let now = 0
  const pace = createReaderPace(16_384, () => now)
  for (let piece = 0; piece < 10; piece++) {
    now += 60_000
    assert.equal(pace.isTooSlow(), false)
    pace.offer()
    pace.take(10)
  }
})
