import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testService } from '#test/harness.ts'

const t = await testService()
/** A request that is not complete after this time is refused. */
const hasty = await testService({ config: { limits: { timeout: 700 } } })

/** A connection that sends raw bytes and collects the responses. */
function conversation({ url } = t) {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', noDelay: true })
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  return {
    send: (bytes: string) => void socket.write(bytes),
    /** Waits for this number of responses. */
    async answers(count: number) {
      while (statusesIn(text).length < count && !socket.closed) await sleep(5)
      return text
    },
    /** Waits until the server closes the connection, and returns all responses. */
    async rest() {
      await closed
      return text
    },
    end: () => socket.destroy(),
  }
}

const statusesIn = (text: string): readonly number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

const head = (method: string, path: string, length: number, more = '') =>
  `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`

const EARLY: Readonly<Record<string, readonly [status: number, head: string]>> = {
  'an unknown path': [404, head('POST', '/nowhere', 1_000)],
  'an unknown path of the other surface': [404, head('POST', '/api/auth/nowhere', 1_000)],
  'a method that is not allowed': [405, head('PUT', '/api/auth/sign-in/email', 1_000)],
  'no credential': [401, head('POST', '/gateway/fetch', 1_000)],
  'no session': [401, head('POST', '/api/auth/update-user', 1_000)],
  'a body that is too large': [413, head('POST', '/api/auth/sign-in/email', 99_999_999)],
}

for (const [name, [status, bytes]] of Object.entries(EARLY)) {
  test(`${name}: returns ${status} before the body is complete and closes the connection without a second response`, async () => {
    for (const rest of ['', 'a'.repeat(1_000), `garbage\r\n\r\n${head('GET', '/ping', 0)}`]) {
      const client = conversation()
      client.send(`${bytes}{`)
      const first = await client.answers(1)
      assert.match(first, /^connection: close\r$/im)
      client.send(rest)
      assert.deepEqual(statusesIn(await client.rest()), [status], rest.slice(0, 20))
    }
  })
}

test('the connection stays open if the whole body has arrived, even if the response does not depend on it', async () => {
  const client = conversation()
  client.send(`${head('POST', '/gateway/fetch', 2)}{}`)
  assert.doesNotMatch(await client.answers(1), /connection: close/i)
  client.send(`${head('POST', '/nowhere', 2)}{}`)
  await client.answers(2)
  client.send('GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n')
  assert.deepEqual(statusesIn(await client.answers(3)), [401, 404, 200])
  client.end()
})

test('a body that never arrives gets one 408 response in the envelope of its surface', async () => {
  const codes = { '/api/auth/sign-in/email': 'REQUEST_TIMEOUT', '/api/auth/sign-up/email': 'REQUEST_TIMEOUT' }
  for (const [path, code] of Object.entries(codes)) {
    const client = conversation(hasty)
    client.send(`${head('POST', path, 1_000)}{"email":`)
    const all = await client.rest()
    assert.deepEqual(statusesIn(all), [408], all)
    assert.match(all, /^connection: close\r$/im)
    assert.match(all, new RegExp(`"code":"${code}"`))
  }
})

test('a body whose rest comes while 408 is on its way out is not answered as well', async (context) => {
  const client = conversation(hasty)
  const path = '/api/auth/sign-in/email'
  client.send(`${head('POST', path, 20)}{"email":`)
  // The rest arrives between the decision and the answer, which waits for the end of a turn. Libraries wait for it as well.
  const { setImmediate } = globalThis
  let isSent = false
  context.mock.method(globalThis, 'setImmediate', (work: () => void, ...given: []) => {
    if (isSent || new Error().stack?.includes('connections/early-answers.ts') !== true)
      return setImmediate(work, ...given)
    isSent = true
    client.send('!'.repeat(11))
    return setTimeout(work, 100)
  })
  const answer = await client.answers(1)
  assert.deepEqual(statusesIn(answer), [408], answer)
  assert.match(answer, /"code":"REQUEST_TIMEOUT"/)
  assert.equal(isSent, true)
  client.end()
})

test('incomplete headers get 408', async () => {
  for (const bytes of ['GET /ping HTT', 'GET /ping HTTP/1.1\r\nhost: localhost\r\nx-a']) {
    const client = conversation(hasty)
    client.send(bytes)
    const all = await client.rest()
    assert.deepEqual(statusesIn(all), [408], all)
    assert.match(all, /"code":"request_timeout"/)
  }
})

test('two Host headers get 400, whatever their values; the letter case of one does not matter', async () => {
  const ask = async (...hosts: readonly string[]) => {
    const client = conversation()
    client.send(
      `GET /ping HTTP/1.1\r\n${hosts.map((host) => `${host}\r\n`).join('')}connection: close\r\n\r\n`,
    )
    return client.rest()
  }
  for (const hosts of [
    ['host: a', 'host: b'],
    ['host: a', 'Host: a'],
    ['host: a', 'HOST:'],
  ] as const) {
    const answer = await ask(...hosts)
    assert.deepEqual(statusesIn(answer), [400])
    assert.match(answer, /The header host is given twice/)
  }
  assert.deepEqual(statusesIn(await ask('HoSt: a')), [200])
})

test('garbage after a request closes the connection and does not corrupt a response that is being written', async () => {
  const client = conversation()
  client.send('GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n\u0000garbage\r\n\r\n')
  const statuses = statusesIn(await client.rest())
  assert.ok(statuses.length <= 2 && statuses.every((status) => [200, 400].includes(status)), String(statuses))
})
