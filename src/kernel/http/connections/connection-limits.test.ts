import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type TestService, testService } from '#test/harness.ts'

async function silentConnections({ url }: TestService, count: number, localAddress = '127.0.0.1') {
  const port = Number(new URL(url).port)
  const sockets: Socket[] = []
  for (let made = 0; made < count; made++) {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    socket.on('error', () => {})
    await once(socket, 'connect')
    sockets.push(socket)
  }
  return { sockets, end: () => void sockets.map((socket) => socket.destroy()) }
}

/** Connections with a request whose body is not complete. */
async function busyConnections(t: TestService, count: number, localAddress?: string) {
  const { sockets, end } = await silentConnections(t, count, localAddress)
  const head = 'POST /api/auth/sign-in/email HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json'
  for (const socket of sockets) socket.write(`${head}\r\ncontent-length: 2\r\n\r\n{`)
  // Until the service has read them, which it does in the next turns.
  await sleep(200)
  return {
    end,
    async finish() {
      const [socket] = sockets
      socket?.end('}')
      return (await socket?.setEncoding('utf8').toArray())?.join('').slice(0, 12)
    },
  }
}

/** By a connection of its own. */
async function ping({ url }: TestService, localAddress = '127.0.0.1') {
  const agent = new Agent({ localAddress })
  try {
    const { statusCode: status, headers, body } = await request(`${url}/ping`, { dispatcher: agent })
    await body.dump()
    return { status, retryAfter: headers['retry-after'], connection: headers.connection }
  } finally {
    await agent.close()
  }
}

const REFUSED = { status: 503, retryAfter: '1', connection: 'close' }

test('strangers who hold silent connections shut no caller out', async () => {
  const t = await testService({ config: { limits: { connections: 10 } } })
  const silent = await silentConnections(t, 40)
  for (let round = 0; round < 20; round++) assert.equal((await ping(t)).status, 200)
  const left = silent.sockets.filter(({ readyState }) => readyState === 'open')
  assert.ok(left.length <= 10, `${left.length} are left`)
  silent.end()
})

test('connections with a request are kept; beyond the limit the answer is 503 with Retry-After', async () => {
  const limits = { connections: 5, connections_per_address: 5 }
  const t = await testService({ config: { limits } })
  const busy = await busyConnections(t, 5)
  assert.deepEqual(await ping(t), REFUSED)
  assert.equal(await busy.finish(), 'HTTP/1.1 400')
  assert.equal((await ping(t)).status, 200)
  busy.end()
})

test('one address has its own limit, and a trusted proxy has none', async () => {
  const limits = { connections: 50, connections_per_address: 5 }
  const t = await testService({ config: { limits, server: { trusted_proxies: ['127.0.0.3'] } } })
  const [stranger, proxy] = [
    await busyConnections(t, 5, '127.0.0.2'),
    await busyConnections(t, 10, '127.0.0.3'),
  ]
  assert.deepEqual(await ping(t, '127.0.0.2'), REFUSED)
  assert.equal((await ping(t)).status, 200)
  assert.equal((await ping(t, '127.0.0.3')).status, 200)
  for (const { end } of [stranger, proxy]) end()
})
