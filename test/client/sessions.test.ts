import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { createClient, type Session } from '#client/client.ts'
import { answering, cut, rows } from './answering-server.ts'

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

/** Each of these would have been a request of the key alone. */
const NO_SESSION: readonly unknown[] = [
  {},
  { token: 'token-1' },
  { user: { id: 1 }, session: { token: 'token-1' } },
  { authorization: 'token-1' },
  { Authorization: 'Basic YTpi' },
  { authorization: 'Bearer ' },
  { 'x-session-token': 'token-1' },
  { host: 'localhost', 'user-agent': 'a browser' },
  ['token-1'],
  new (class {
    token = 'token-1'
  })(),
]

test('an object that carries no session is a mistake, and nothing is sent', async () => {
  const { client, received } = await answering(rows)
  for (const given of NO_SESSION) {
    const orders = client({ key: 'svc_key', session: () => given as Session }).from('orders')
    await assert.rejects(async () => orders.select('id'), { name: 'TypeError', message: /^session gives/ })
    await assert.rejects(orders.insert({ id: 1 }).orThrow(), TypeError)
  }
  assert.equal(received.length, 0)
})

test('of the headers of a visitor only those of the session are passed on, and a visitor may have none', async () => {
  const { client, received } = await answering(rows)
  const visitor = {
    host: 'shop.example.com',
    'content-length': '7',
    apikey: 'svc_of.visitor',
    'x-service-key': 'svc_of.visitor',
    'x-service-client': 'other',
    'X-Service-Auth-Session-Token': 'token-2',
    Cookie: 'a=b',
  }
  const sentBy = async (session: unknown) => {
    const db = client({ key: 'svc_key', session: () => session as Session })
    await db.from('orders').select('id').orThrow()
    const { headers } = received.at(-1) ?? assert.fail()
    const { authorization, cookie, apikey } = headers
    return [
      authorization,
      cookie,
      apikey,
      headers['x-service-client'],
      headers['x-service-key'],
      headers['x-service-auth-session-token'],
    ]
  }
  const passed = [undefined, 'a=b', 'svc_key', 'default', undefined, 'token-2']
  assert.deepEqual(await sentBy(visitor), passed)
  assert.deepEqual(await sentBy(new Headers({ ...visitor, authorization: 'Basic YTpi' })), passed)
  const none = [undefined, undefined, 'svc_key', 'default', undefined, undefined]
  for (const nobody of [
    '',
    null,
    new Headers({ host: 'shop' }),
    { cookie: undefined },
    { authorization: '' },
  ])
    assert.deepEqual(await sentBy(nobody), none)
})
