import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testService } from '#test/harness.ts'

const t = await testService({ config: { limits: { timeout: 700 } } })
const port = Number(new URL(t.url).port)

/** A connection on which bytes are sent as they stand, and everything that comes back. */
function conversation() {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  return {
    send: (bytes: string) => void socket.write(bytes),
    /** Until so many answers are there. */
    async answers(count: number) {
      while (statusesIn(text).length < count && !socket.closed) await sleep(5)
      return text
    },
    /** Everything that came until the server closed the connection. */
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
  'an unknown address': [404, head('POST', '/nowhere', 1_000)],
  'an unknown address of the other surface': [404, head('POST', '/api/auth/nowhere', 1_000)],
  'a method that is not taken': [405, head('PUT', '/api/auth/sign-in/email', 1_000)],
  'no credential': [401, head('POST', '/gateway/fetch', 1_000)],
  'no session': [401, head('POST', '/api/auth/update-user', 1_000)],
  'a body that is too large': [413, head('POST', '/api/auth/sign-in/email', 99_999_999)],
}

for (const [name, [status, bytes]] of Object.entries(EARLY)) {
  test(`${name}: ${status} while the body is still on its way, and the connection ends without a second answer`, async () => {
    for (const behind of ['', 'a'.repeat(1_000), `garbage\r\n\r\n${head('GET', '/ping', 0)}`]) {
      const client = conversation()
      client.send(`${bytes}{`)
      const first = await client.answers(1)
      assert.match(first, /^connection: close\r$/im)
      client.send(behind)
      assert.deepEqual(statusesIn(await client.rest()), [status], behind.slice(0, 20))
    }
  })
}

test('a body that is there whole leaves the connection open, also when the answer does not need it', async () => {
  const client = conversation()
  client.send(`${head('POST', '/gateway/fetch', 2)}{}`)
  assert.doesNotMatch(await client.answers(1), /connection: close/i)
  client.send(`${head('POST', '/nowhere', 2)}{}`)
  await client.answers(2)
  client.send('GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n')
  assert.deepEqual(statusesIn(await client.answers(3)), [401, 404, 200])
  client.end()
})

test('a body that does not come is 408 in the envelope of its surface, and one answer is all', async () => {
  const codes = { '/api/auth/sign-in/email': 'REQUEST_TIMEOUT', '/api/auth/sign-up/email': 'REQUEST_TIMEOUT' }
  for (const [path, code] of Object.entries(codes)) {
    const client = conversation()
    client.send(`${head('POST', path, 1_000)}{"email":`)
    const all = await client.rest()
    assert.deepEqual(statusesIn(all), [408], all)
    assert.match(all, /^connection: close\r$/im)
    assert.match(all, new RegExp(`"code":"${code}"`))
  }
})

test('headers that do not come are 408', async () => {
  for (const bytes of ['GET /ping HTT', 'GET /ping HTTP/1.1\r\nhost: localhost\r\nx-a']) {
    const client = conversation()
    client.send(bytes)
    const all = await client.rest()
    assert.deepEqual(statusesIn(all), [408], all)
    assert.match(all, /"code":"request_timeout"/)
  }
})

test('two Hosts are 400, whatever they say, and one in any case is fine', async () => {
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
    assert.match(answer, /The header host came twice/)
  }
  assert.deepEqual(statusesIn(await ask('HoSt: a')), [200])
})

test('garbage behind an answer that is still being written ends the connection and is not answered into it', async () => {
  const client = conversation()
  client.send('GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n\u0000garbage\r\n\r\n')
  const statuses = statusesIn(await client.rest())
  assert.ok(statuses.length <= 2 && statuses.every((status) => [200, 400].includes(status)), String(statuses))
})
