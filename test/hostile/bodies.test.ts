import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { testDatabase, withClient } from '#test/database.ts'
import { PASSWORD, testService } from '#test/harness.ts'

const KIB = 1_024
const [one, two] = [await testDatabase(), await testDatabase()]
after(() => Promise.all([one.drop(), two.drop()]))
for (const { url } of [one, two])
  await withClient(url, (client) => client.query('create table note (id int, text text)'))

const limits = { body: 64 * KIB, body_bulk: 128 * KIB, bodies: 1_024 * KIB }
const t = await testService({
  config: {
    limits,
    server: { trusted_proxies: ['127.0.0.1'] },
    clients: { one: { url: one.url }, two: { url: two.url } },
  },
})
const port = Number(new URL(t.url).port)
const key = await t.key(['*'], { client_name: null })

const notes = (bytes: number) => ({ table_name: 'note', insert_body: [{ id: 1, text: 'x'.repeat(bytes) }] })
const insert = (client: string, body: object) =>
  key.send('PUT', '/gateway/insert', { body, headers: { 'x-service-client': client } })

const metric = async (name: string): Promise<number> => {
  const value = new RegExp(`^${name} (\\d+)$`, 'm').exec(await t.service.kernel.metrics.registry.metrics())
  return Number(value?.[1])
}
const bodyBytes = () => metric('gatehouse_body_bytes')
async function until(condition: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 60_000; !(await condition()); await sleep(5))
    assert.ok(Date.now() < end, 'the condition did not hold within a minute')
}
const allReleased = () => until(async () => (await bodyBytes()) === 0)

/** Locks the table of client `one` while the work runs. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  const session = new pg.Client(one.url)
  await session.connect()
  await session.query('begin; lock table note in access exclusive mode')
  try {
    await work()
  } finally {
    await session.end()
  }
}

/** Starts a request with the beginning of its body, as if from this address. */
function startRequest(head: readonly string[], first: string, address = '192.0.2.1') {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const answer = socket
    .setEncoding('utf8')
    .toArray()
    .then((parts) => parts.join(''))
  answer.catch(() => {})
  const lines = [
    'host: localhost',
    'content-type: application/json',
    `x-forwarded-for: ${address}`,
    ...head.slice(1),
  ]
  socket.write(`${head[0]} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${first}`)
  return { socket, answer }
}

test('bodies that wait for a blocked database use bounded memory and do not affect other clients', async () => {
  const large = notes(100 * KIB)
  let waiting: ReturnType<typeof insert>[] = []
  await whileLocked(async () => {
    waiting = [insert('one', large), insert('one', large)]
    await until(async () => (await bodyBytes()) > 400 * KIB)
    const refused = await insert('one', large)
    assert.deepEqual(
      [refused.status, refused.body.code, refused.headers.get('retry-after')],
      [503, 'service_unavailable', '1'],
    )
    assert.match(refused.body.message, /large requests/)
    assert.match(refused.body.error, /limits\.bodies/)
    assert.ok((await bodyBytes()) <= limits.bodies / 2, 'one client uses more than half')
    assert.equal((await insert('two', large)).status, 200, 'another client')
    await t.signUp('Ada')
    // A small body is not counted: it waits for the table like the first two.
    waiting.push(insert('one', notes(10)))
    await until(async () => {
      const { rows } = await withClient(one.url, (client) =>
        client.query(
          `select count(*)::int as waits from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        ),
      )
      return rows[0].waits === 3
    })
  })
  assert.deepEqual(
    (await Promise.all(waiting)).map(({ status }) => status),
    [200, 200, 200],
  )
  await allReleased()
  assert.equal((await insert('one', large)).status, 200, 'the memory was not released')
})

test('the memory of a body is released if its caller disconnects, before or after the body is complete', async () => {
  const text = JSON.stringify(notes(100 * KIB))
  const head = ['PUT /gateway/insert', `apikey: ${key.apiKey}`, 'x-service-client: one']
  await whileLocked(async () => {
    const whole = startRequest([...head, `content-length: ${text.length}`], text)
    const half = startRequest([...head, `content-length: ${text.length}`], text.slice(0, 50 * KIB))
    const chunked = startRequest(
      [...head, 'transfer-encoding: chunked'],
      `${(50 * KIB).toString(16)}\r\n${text.slice(0, 50 * KIB)}\r\n`,
    )
    await until(async () => (await bodyBytes()) > 300 * KIB)
    for (const { socket } of [whole, half, chunked]) socket.destroy()
    await allReleased()
  })
})

test('the memory of the parsed body is counted as well', async () => {
  const before = await metric('gatehouse_bodies_refused_total')
  // 21,000 empty objects are 64 KB of text, but more than a megabyte in memory.
  const many = { table_name: 'note', insert_body: Array.from({ length: 21_000 }, () => ({})) }
  const answer = await insert('one', many)
  assert.deepEqual([answer.status, answer.body.code], [413, 'payload_too_large'], answer.text)
  assert.match(answer.body.error, /limits\.bodies/)
  assert.equal(answer.body.data.details.maximum_bytes, limits.bodies / 2)
  await allReleased()
  assert.equal(await metric('gatehouse_bodies_refused_total'), before, 'it was rejected for lack of memory')
})

test('one address can use half of the budget; slow bodies are aborted when a request needs their memory', async () => {
  const head = ['POST /api/auth/sign-in/email', `content-length: ${60 * KIB}`]
  const beginning = `{"email":"${'x'.repeat(55 * KIB)}`
  const sockets: Socket[] = []
  const answers: string[] = []
  const begin = (address: string) => {
    const { socket, answer } = startRequest(head, beginning, address)
    sockets.push(socket)
    answer.then((text) => text !== '' && answers.push(text)).catch(() => {})
  }
  for (let index = 0; index < 10; index++) begin('192.0.2.1')
  await until(async () => answers.length === 1)
  for (let index = 0; index < 9; index++) begin('192.0.2.2')
  await until(async () => (await bodyBytes()) > limits.bodies - 60 * KIB)
  assert.equal(answers.length, 1, 'more than nine bodies of an address are accepted')
  // They have just started, so they are not slow yet.
  assert.equal((await insert('two', notes(100 * KIB))).status, 503)
  assert.equal(answers.length, 1)
  t.advance(10_000)
  const answer = await insert('two', notes(100 * KIB))
  assert.equal(answer.status, 200, answer.text)
  await until(async () => answers.length > 1)
  for (const text of answers) assert.match(text, / 503 .*SERVICE_UNAVAILABLE/s)
  for (const socket of sockets) socket.destroy()
  await allReleased()
})

test('stalled bodies for a client do not block other callers of that client', async () => {
  const head = [
    'POST /gateway/fetch',
    `apikey: ${key.apiKey}`,
    'x-service-client: one',
    `content-length: ${64 * KIB}`,
  ]
  const stalled = Array.from({ length: 8 }, () =>
    startRequest(head, `{"table_name":"${'x'.repeat(60 * KIB)}`),
  )
  await until(async () => (await bodyBytes()) > 480 * KIB)
  // They have just started, so they are not slow yet.
  assert.equal((await insert('one', notes(20 * KIB))).status, 503)
  t.advance(10_000)
  const answer = await insert('one', notes(20 * KIB))
  assert.equal(answer.status, 200, answer.text)
  assert.match(await Promise.race(stalled.map(({ answer }) => answer)), / 503 .*service_unavailable/s)
  for (const { socket } of stalled) socket.destroy()
  await allReleased()
})

test('a body that arrives byte by byte is read correctly', async () => {
  const text = JSON.stringify({ email: 'nobody@example.com', password: PASSWORD, filler: 'é'.repeat(2_000) })
  const { socket, answer } = startRequest(
    ['POST /api/auth/sign-in/email', 'transfer-encoding: chunked', 'connection: close'],
    '',
  )
  for (const byte of Buffer.from(text))
    socket.write(Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]))
  socket.write('0\r\n\r\n')
  assert.match(await answer, / 401 .*INVALID_EMAIL_OR_PASSWORD/s)
})
