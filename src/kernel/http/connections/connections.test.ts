import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestService, testService } from '#test/harness.ts'

/** A connection that collects what the service sends. */
async function conversation({ url }: TestService) {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', noDelay: true })
  let text = ''
  let error: unknown
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', (found) => {
    error = found
  })
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  await once(socket, 'connect')
  const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
  return {
    ask: (path: string) => void socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`),
    write: (part: string) => void socket.write(part),
    /** Waits for this number of answers, and returns all text so far. */
    async answers(count: number) {
      while (statuses().length < count && !socket.closed) await sleep(5)
      return text
    },
    /** Waits for the end of the connection, which must be no reset. Returns the statuses of all answers. */
    async end() {
      await closed
      assert.equal(error, undefined)
      return statuses()
    },
  }
}

const LAST = /^connection: close\r$/im

test('while the service drains it is not ready, and each answer is the last on its connection', async () => {
  const t = await testService({ config: { server: { drain: 2_000 } } })
  const [idle, slow] = [await conversation(t), await conversation(t)]
  idle.ask('/ping')
  assert.doesNotMatch(await idle.answers(1), LAST)
  slow.write('GET /ping HTTP/1.1\r\nhost: local')

  const stopped = t.stop()
  const fresh = await conversation(t)
  fresh.ask('/health/ready')
  const answer = await fresh.answers(1)
  assert.match(answer, /^HTTP\/1\.1 503 /)
  assert.match(answer, LAST)
  assert.match(answer, /The service is shutting down/)
  idle.ask('/ping')
  assert.match(await idle.answers(2), LAST)
  slow.write('host\r\n\r\n')
  assert.match(await slow.answers(1), LAST)
  assert.deepEqual(await Promise.all([idle.end(), slow.end(), fresh.end()]), [[200, 200], [200], [503]])

  await stopped
  await assert.rejects(conversation(t), { code: 'ECONNREFUSED' })
})

test('a request that has been sent on an idle connection is answered when the service stops', async () => {
  const t = await testService()
  const connections = await Promise.all(Array.from({ length: 20 }, () => conversation(t)))
  for (const connection of connections) connection.ask('/ping')
  for (const connection of connections) await connection.answers(1)
  const partial = await conversation(t)
  partial.ask('/ping')
  await partial.answers(1)
  partial.write('GET /ping HTTP/1.1\r\nhost: local')
  const fresh = await conversation(t)

  for (const connection of connections) connection.ask('/ping')
  const stopped = t.stop()
  for (const connection of connections) assert.match(await connection.answers(2), LAST)
  // A request that has begun, and the first one of a new connection.
  partial.write('host\r\n\r\n')
  fresh.ask('/ping')
  assert.deepEqual(await Promise.all(connections.map(({ end }) => end())), Array(20).fill([200, 200]))
  assert.deepEqual(await Promise.all([partial.end(), fresh.end()]), [[200, 200], [200]])
  await stopped
})

test('connections without a request are ended in order, and hold up no stop', async () => {
  const t = await testService()
  const [idle, silent] = [await conversation(t), await conversation(t)]
  idle.ask('/ping')
  await idle.answers(1)
  await t.stop()
  assert.deepEqual(await Promise.all([idle.end(), silent.end()]), [[200], []])
  assert.doesNotMatch(t.log.join(''), /stop_late/)
})

test('the requests of a connection beyond 32 without an answer are refused, and end it', async () => {
  const t = await testService()
  const ping = 'GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n'
  const { write, end } = await conversation(t)
  write(ping.repeat(100))
  assert.deepEqual(await end(), [...Array(32).fill(200), 503])
  const flood = await conversation(t)
  flood.write(ping.repeat(1_000))
  // It is closed with requests unread, which the client may see as a reset.
  assert.deepEqual((await flood.answers(1)).match(/ 503 /g), null)
  await t.stop()
})

test('documents that many strangers ask for and none reads take no memory', async () => {
  const t = await testService({ config: { docs: { enabled: true } } })
  // Bytes that wait in sockets are not in the heap.
  const held = () => process.memoryUsage.rss() / 1_048_576
  const first = await conversation(t)
  first.ask('/openapi.json')
  await first.answers(1)
  const before = held()
  const sockets = Array.from({ length: 50 }, () =>
    connect({ port: Number(new URL(t.url).port), host: '127.0.0.1' })
      .on('error', () => {})
      .pause(),
  )
  for (const path of ['/openapi.json', '/docs/swagger-ui-bundle.js'])
    for (const socket of sockets) socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`.repeat(20))
  await sleep(3_000)
  const more = held() - before
  for (const socket of sockets) socket.destroy()
  await t.stop()
  assert.ok(more < 150, `${Math.round(more)} MiB more`)
})
