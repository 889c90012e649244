import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { after, test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type LoopbackServer, startLoopbackServer } from '#test/loopback-server.ts'
import { createAddressPolicy } from './address-policy.ts'
import { createOutboundRequests, type OutboundAnswer, OutboundRefused } from './outbound.ts'

test('private, local, multicast and metadata addresses are forbidden, in any spelling', () => {
  const mayReach = createAddressPolicy([])
  for (const address of [
    ['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.100.100.200'],
    ['127.0.0.1', '127.255.255.254', '169.254.169.254', '168.63.129.16', '172.16.0.1', '172.31.255.255'],
    [
      '192.0.0.192',
      '192.0.2.1',
      '192.168.0.1',
      '198.18.0.1',
      '198.19.255.255',
      '198.51.100.1',
      '203.0.113.1',
    ],
    ['224.0.0.1', '239.255.255.250', '240.0.0.1', '255.255.255.255'],
    ['::', '::1', '::7f00:1', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'fc00::1', 'fd00:ec2::254', 'ff02::1'],
    ['::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:ffff:a00:1', '::ffff:169.254.169.254'],
    [
      '64:ff9b::10.0.0.1',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b:1::1',
      '2002:7f00:1::',
      '2001::1',
      '2001:db8::1',
      '3fff::1',
    ],
    ['', 'localhost', '1.2.3', '1.2.3.4.5', '2001:4860::%eth0'],
  ].flat()) {
    assert.equal(mayReach(address), false, address)
  }
})

test('public addresses are allowed, also through NAT64', () => {
  const mayReach = createAddressPolicy([])
  for (const address of [
    ['1.1.1.1', '9.255.255.255', '11.0.0.0', '100.128.0.1', '172.15.0.1', '172.32.0.1', '192.167.1.1'],
    ['223.255.255.255', '2606:4700:4700::1111', '2a00:1450::1', '64:ff9b::1.1.1.1', '::ffff:1.1.1.1'],
  ].flat()) {
    assert.equal(mayReach(address), true, address)
  }
})

test('allow_networks allows exactly the networks that it names', () => {
  const mayReach = createAddressPolicy(['10.1.0.0/16', 'fd00:1::/32', '127.0.0.1'])
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', 'fd00:1::5', '127.0.0.1', '1.1.1.1'])
    assert.equal(mayReach(address), true, address)
  for (const address of ['10.2.0.1', 'fd00:2::5', '127.0.0.2', '::1', '169.254.169.254'])
    assert.equal(mayReach(address), false, address)
})

const LOOPBACK = { allow_http: true, allow_networks: ['127.0.0.1/32'] }
const CLOSED = { allow_http: true, allow_networks: [] }
const LIMITS = { timeout: 5_000, maxBytes: 1_000 }

/** A server on 127.0.0.1 that counts its requests. */
async function listen(answer: RequestListener): Promise<LoopbackServer & { seen: string[] }> {
  const seen: string[] = []
  const server = await startLoopbackServer((request, response) => {
    seen.push(`${request.method} ${request.url}`)
    answer(request, response)
  })
  return { ...server, seen }
}

type Rules = { allow_http: boolean; allow_networks: string[] }

function outbound(rules: Rules, names: Record<string, readonly string[]> = {}) {
  const asked: string[] = []
  const made = createOutboundRequests({ outbound: rules }, (hostname, _options, callback) => {
    asked.push(hostname)
    callback(
      null,
      (names[hostname] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  })
  after(() => made.close())
  return { ...made, asked }
}

const text = ({ status, body }: OutboundAnswer): [number, string] => [status, body.toString()]

test('a request arrives with its method, headers and body, and its answer is returned', async () => {
  const server = await listen((request, response) => {
    response.setHeader('x-seen', request.headers['x-sent'] ?? '')
    request.pipe(response.writeHead(201))
  })
  const answer = await outbound(LOOPBACK).send(`${server.url}/hook`, {
    method: 'POST',
    headers: { 'x-sent': 'yes' },
    body: 'hello',
    ...LIMITS,
  })
  assert.deepEqual([...text(answer), answer.headers['x-seen'], answer.isWhole], [201, 'hello', 'yes', true])
  assert.deepEqual(server.seen, ['POST /hook'])
})

test('a forbidden request is refused before anything is sent', async () => {
  const server = await listen((_request, response) => response.end())
  const { port } = server
  const closed = outbound(CLOSED, { 'inside.example': ['127.0.0.1'], 'mapped.example': ['::ffff:127.0.0.1'] })
  for (const host of [
    [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '127.0.0.1.',
      '[::1]',
      '[::ffff:127.0.0.1]',
    ],
    ['[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '0', '169.254.169.254', 'inside.example', 'mapped.example'],
  ].flat()) {
    await assert.rejects(closed.send(`http://${host}:${port}/`, LIMITS), OutboundRefused, host)
  }
  await assert.rejects(closed.send('https://inside.example/', LIMITS), OutboundRefused)
  assert.deepEqual(server.seen, [])
})

test('a URL with a forbidden address is refused without a look-up', () => {
  const { refusal } = outbound({ allow_http: false, allow_networks: [] })
  assert.equal(refusal('https://example.com/hook'), undefined)
  assert.equal(refusal('https://[2606:4700:4700::1111]/'), undefined)
  for (const url of [
    [
      'http://example.com',
      'ftp://example.com',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'example.com',
      '',
    ],
    ['https://user@example.com', 'https://:secret@example.com', 'https://10.0.0.1', 'https://[fd00::1]'],
  ].flat()) {
    assert.match(refusal(url) ?? '', /only https|user or password|private network/, url)
  }
})

test('plain http needs allow_http', async () => {
  const server = await listen((_request, response) => response.end())
  const strict = outbound({ allow_http: false, allow_networks: ['127.0.0.1'] })
  await assert.rejects(strict.send(server.url, LIMITS), {
    name: 'OutboundRefused',
    message: 'only https is allowed (outbound.allow_http: true allows plain http)',
  })
  assert.deepEqual(server.seen, [])
})

test('the checked address is the one that is connected to, against DNS rebinding', async () => {
  const server = await listen((_request, response) => response.setHeader('connection', 'close').end('in'))
  const names = { 'rebind.example': ['127.0.0.1'] }
  const { send, asked } = outbound(LOOPBACK, names)
  const url = `http://rebind.example:${server.port}/`
  assert.deepEqual(text(await send(url, LIMITS)), [200, 'in'])
  assert.deepEqual(asked, ['rebind.example'], 'asked once, and what it said then was used')
  names['rebind.example'] = ['127.0.0.2']
  await assert.rejects(send(url, LIMITS), OutboundRefused)
  assert.equal(server.seen.length, 1)
})

test('requests to a host share its look-up', async () => {
  const server = await listen((_request, response) => response.end('in'))
  const waiting: (() => void)[] = []
  const made = createOutboundRequests({ outbound: LOOPBACK }, (_hostname, _options, callback) =>
    waiting.push(() => callback(null, [{ address: '127.0.0.1', family: 4 }])),
  )
  after(() => made.close())
  const url = `http://shared.example:${server.port}/`
  const requests = [1, 2, 3].map(() => made.send(url, LIMITS))
  while (waiting.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await new Promise((resolve) => setTimeout(resolve, 30))
  assert.equal(waiting.length, 1)
  waiting[0]?.()
  for (const request of requests) assert.deepEqual(text(await request), [200, 'in'])
})

test('only the allowed addresses of a name are tried', async () => {
  const server = await listen((_request, response) => response.end('in'))
  const { send } = outbound(LOOPBACK, { 'mixed.example': ['10.0.0.1', '127.0.0.2', '127.0.0.1'] })
  assert.deepEqual(text(await send(`http://mixed.example:${server.port}/`, LIMITS)), [200, 'in'])
})

test('a redirect is returned and not followed', async () => {
  const server = await listen((_request, response) => response.writeHead(302, { location: '/inside' }).end())
  const answer = await outbound(LOOPBACK).send(`${server.url}/outside`, LIMITS)
  assert.deepEqual([answer.status, answer.headers.location], [302, '/inside'])
  assert.deepEqual(server.seen, ['GET /outside'])
})

test('a connection that is not used is closed soon, whatever the server asks for', async () => {
  const { url } = await listen((request, response) => {
    request.socket.once('close', closed.resolve)
    response.writeHead(200, { connection: 'keep-alive', 'keep-alive': 'timeout=600' }).end()
  })
  const closed = Promise.withResolvers<unknown>()
  const { send } = outbound(LOOPBACK)
  await send(url, LIMITS)
  const late = setTimeout(closed.reject, 60_000, new Error('The connection is open after a minute'))
  await closed.promise.finally(() => clearTimeout(late))
})

test('an answer is read up to the limit', async () => {
  let isCutOff = false
  const server = await listen((request, response) => {
    const flood = setInterval(() => response.write('x'.repeat(600)), 5)
    request.socket.on('close', () => {
      isCutOff = true
      clearInterval(flood)
    })
  })
  const { body, isWhole } = await outbound(LOOPBACK).send(server.url, LIMITS)
  assert.deepEqual([body.length, isWhole], [1_000, false])
  await eventually(() => isCutOff)
})

test('an answer of exactly the limit is complete', async () => {
  const server = await listen((_request, response) => response.end('x'.repeat(1_000)))
  const { body, isWhole } = await outbound(LOOPBACK).send(server.url, LIMITS)
  assert.deepEqual([body.length, isWhole], [1_000, true])
})

test('the time limit applies to an answer that never begins and to one that never ends', async () => {
  const silent = await listen(() => {})
  const endless = await listen((request, response) => {
    const drip = setInterval(() => response.write('x'), 20)
    request.socket.on('close', () => clearInterval(drip))
  })
  const { send } = outbound(LOOPBACK)
  for (const { url } of [silent, endless]) {
    const began = performance.now()
    await assert.rejects(send(url, { ...LIMITS, timeout: 150 }), { name: 'TimeoutError' })
    assert.ok(performance.now() - began < 30_000)
  }
})

test('the time limit and the signal end a request whose connection is not there yet', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1')
  after(() => silent.close())
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo // a TCP server's
  const { send } = outbound(LOOPBACK)
  const url = `https://127.0.0.1:${port}/`
  const request = { timeout: 50, maxBytes: 1 }
  await assert.rejects(send(url, request), { name: 'TimeoutError' })
  const signal = AbortSignal.abort(new Error('the caller has left'))
  await assert.rejects(send(url, { ...request, signal }), /the caller has left/)
})

test('an unknown name and a closed port are ordinary errors', async () => {
  const { port } = await listen(() => {})
  const failing = createOutboundRequests({ outbound: LOOPBACK }, (_hostname, _options, callback) =>
    callback(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }), []),
  )
  after(() => failing.close())
  await assert.rejects(failing.send(`http://nowhere.example:${port}/`, LIMITS), { code: 'ENOTFOUND' })
  await assert.rejects(outbound(LOOPBACK).send('http://127.0.0.1:1/', LIMITS), { code: 'ECONNREFUSED' })
})
