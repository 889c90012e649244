import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { type ClientOptions, createClient } from '#client/client.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

type Answer = (response: ServerResponse, request: IncomingMessage) => void
type Received = { readonly path: string; readonly headers: IncomingMessage['headers']; readonly body: string }

/** A server that gives these answers one after the other, and then the last one for ever. */
async function answering(...answers: readonly Answer[]) {
  const received: Received[] = []
  const { url } = await startLoopbackServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => {
      body += text
    })
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body })
      answers[Math.min(received.length, answers.length) - 1]?.(response, request)
    })
  })
  const client = (more: Partial<ClientOptions> = {}) => createClient({ url, ...more })
  return { received, client, url, orders: client().from('orders') }
}

const json =
  (status: number, body: object, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
const rows = json(200, { status: 'success', data: [{ id: 1 }] })
const refused = (status: number, code: string, headers: Record<string, string> = {}) =>
  json(
    status,
    { status: 'error', code, message: 'A message', error: 'Some advice', request_id: 'r1' },
    headers,
  )
const cut: Answer = (response) => response.destroy()
const half: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 }).write('{"data":[')
  response.destroy()
}

test('a read is sent again when the service could not answer, three times at most', async () => {
  const passing = await answering(cut, half, refused(503, 'client_busy'), rows)
  assert.deepEqual(await passing.orders.select('id').orThrow(), [{ id: 1 }])
  assert.equal(new Set(passing.received.map(({ body }) => body)).size, 1)
  const lasting = await answering(cut)
  const { error } = await lasting.orders.select('id')
  assert.deepEqual([error?.code, error?.status, lasting.received.length], ['network', 0, 4])
  const counted = await answering(refused(429, 'too_many_requests'), json(200, { count: 7 }))
  assert.equal(await counted.orders.count().orThrow(), 7)
})

test('a refusal that would come again is not asked for twice', async () => {
  for (const answer of [
    refused(400, 'unknown_column'),
    refused(401, 'invalid_api_key'),
    refused(500, 'internal_error'),
    refused(504, 'statement_timeout'),
  ]) {
    const { orders, received } = await answering(answer, rows)
    const { error } = await orders.select('id')
    assert.deepEqual([error?.message, error?.hint, error?.requestId], ['A message', 'Some advice', 'r1'])
    assert.equal(received.length, 1)
  }
})

test('the service says how long to wait, up to ten seconds', async () => {
  const short = await answering(refused(429, 'too_many_requests', { 'retry-after': '1' }), rows)
  assert.deepEqual(await short.orders.select('id').orThrow(), [{ id: 1 }])
  const long = await answering(refused(429, 'too_many_requests', { 'retry-after': '11' }), rows)
  const { error } = await long.orders.select('id')
  assert.deepEqual([error?.code, error?.retryAfter, long.received.length], ['too_many_requests', 11, 1])
})

test('writes, functions and SQL are sent once, whatever happens to the answer', async () => {
  for (const answer of [cut, half, refused(503, 'client_busy'), refused(409, 'write_conflict')]) {
    const { client, received } = await answering(answer, rows)
    const db = client()
    const asked = [
      db.from('orders').insert({ id: 1 }),
      db.from('orders').upsert({ id: 1 }, { onConflict: 'id' }),
      db.from('orders').upsert([{ id: 1 }, { id: 2 }], { onConflict: 'id' }),
      db.from('orders').update({ id: 1 }).eq('id', 1),
      db.from('orders').delete().eq('id', 1),
      db.transaction([db.from('orders').insert({ id: 1 })]),
      db.rpc('f', {}),
      db.sql('select 1'),
    ]
    for (const query of asked) {
      received.length = 0
      const { error } = await query
      assert.ok(error)
      assert.equal(received.length, 1)
      // The next one gets the first answer again.
      received.length = 0
    }
  }
})

test('a write under a key is sent again, as the same transaction with the same key', async () => {
  const { client, received } = await answering(
    cut,
    refused(409, 'write_conflict'),
    json(200, { results: [{ id: '0', data: [], affected_rows: 1 }] }),
  )
  const written = await client().from('orders').insert({ id: 1 }).idempotent('key-1')
  assert.deepEqual([written.error, written.count], [null, 1])
  assert.deepEqual(
    received.map(({ path, headers }) => [path, headers['idempotency-key']]),
    Array(3).fill(['/gateway/transaction', 'key-1']),
  )
  assert.equal(new Set(received.map(({ body }) => body)).size, 1)
})

test('a signal ends the request, also between two of them, and a timeout counts them all', async () => {
  const silent: Answer = () => {}
  const controller = new AbortController()
  const waiting = await answering((response) => {
    controller.abort()
    response.destroy()
  })
  const { error: aborted } = await waiting.orders.select('id').signal(controller.signal)
  assert.deepEqual([aborted?.code, aborted?.status, waiting.received.length], ['aborted', 0, 1])
  const { error: before } = await waiting.orders.insert({ id: 1 }).signal(controller.signal)
  assert.deepEqual([before?.code, waiting.received.length], ['aborted', 1])
  const { orders, received } = await answering(silent)
  assert.equal((await orders.select('id').timeout(20)).error?.code, 'timeout')
  assert.equal((await orders.select('id').signal(AbortSignal.timeout(20))).error?.code, 'timeout')
  assert.equal((await orders.count().timeout(20)).error?.code, 'timeout')
  assert.equal((await orders.delete().eq('id', 1).timeout(20)).error?.code, 'timeout')
  assert.equal(received.length, 4)
  const hanging = createClient({ url: 'http://127.0.0.1:1', session: () => new Promise<string>(() => {}) })
  assert.equal((await hanging.from('orders').select('id').timeout(20)).error?.code, 'timeout')
})

test('the session is asked for at each attempt, and sent as a token or as headers', async () => {
  const { client, received } = await answering(cut, rows)
  let asked = 0
  const tokens = client({ key: 'svc_key', client: 'shop', session: async () => `token-${++asked}` })
  await tokens.from('orders').select('id').orThrow()
  await client({ session: () => ({ cookie: 'a=b' }) })
    .from('orders')
    .select('id')
    .orThrow()
  await client({ session: () => undefined })
    .from('orders')
    .select('id')
    .orThrow()
  const sent = received.map(({ headers }) => [
    headers.authorization,
    headers.cookie,
    headers.apikey,
    headers['x-service-client'],
  ])
  assert.deepEqual(sent, [
    ['Bearer token-1', undefined, 'svc_key', 'shop'],
    ['Bearer token-2', undefined, 'svc_key', 'shop'],
    [undefined, 'a=b', undefined, 'default'],
    [undefined, undefined, undefined, 'default'],
  ])
  // A promise of another realm, as in a test runner.
  const foreign = () => runInNewContext('Promise.resolve("token-3")')
  const others = [foreign, () => new Headers({ authorization: 'Bearer token-3' })]
  for (const session of others) {
    await client({ session: session as () => Promise<string> })
      .from('orders')
      .select('id')
      .orThrow()
    assert.equal(received.at(-1)?.headers.authorization, 'Bearer token-3')
  }
  const failing = client({ session: () => Promise.reject(new Error('no store')) })
  await assert.rejects(async () => failing.from('orders').select('id'), /no store/)
})

test('an answer that is not of the service is a network error with its status, and a redirect is not followed', async () => {
  const html: Answer = (response) =>
    response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>')
  const wrong = await answering(html)
  const { error } = await wrong.orders.select('id')
  assert.deepEqual([error?.code, error?.status, wrong.received.length], ['network', 404, 1])
  const elsewhere = await answering(rows)
  const moved = await answering((response) => response.writeHead(307, { location: elsewhere.url }).end())
  const { error: redirected } = await moved.client({ key: 'svc_key' }).from('orders').select('id')
  assert.deepEqual([redirected?.code, elsewhere.received.length], ['network', 0])
  const text = await answering((response) => response.writeHead(200).end('all is well'))
  assert.equal((await text.orders.select('id')).error?.code, 'network')
})

test('the client of better-auth is for browsers: there its cookie is sent, and a server refuses it', async () => {
  const auth = { getSession: async () => ({}) }
  const url = 'http://localhost'
  assert.throws(() => createClient({ url, auth }), /On a server, pass session/)
  const page = globalThis as { document?: object; location?: object } // as in a browser
  page.document = {}
  page.location = {}
  try {
    const sent: unknown[] = []
    const fetch = async (_address: unknown, init?: RequestInit) => {
      sent.push(init?.credentials)
      return Response.json({ data: [] })
    }
    await createClient({ url, auth, fetch }).from('orders').select('id').orThrow()
    await createClient({ url, fetch }).from('orders').select('id').orThrow()
    assert.deepEqual(sent, ['include', 'omit'])
    assert.throws(() => createClient({ url, auth, session: () => 'token' }), /exclude each other/)
  } finally {
    delete page.document
    delete page.location
  }
})

test('an address that is none is a mistake', () => {
  assert.throws(() => createClient({ url: '' }), /url is the address of the service/)
  assert.throws(() => createClient({ url: 'localhost:8080' }), /url is the address of the service/)
  // Its message does not repeat what may be the key.
  assert.throws(
    () => createClient({ url: 'svc_id.secret' }),
    ({ message }: Error) => !message.includes('secret'),
  )
})
