import assert from 'node:assert/strict'
import { Agent, METHODS, request } from 'node:http'
import { after, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { ADMIN_KEY, linkIn, testService } from '#test/harness.ts'
import { properBody } from './attacks.ts'
import { type Target, targetsOf } from './routes.ts'

const t = await testService({ config: { auth: EVERY_FEATURE } })
const session = await t.signUp('Ada')
const key = await t.key(['*'])
await withClient(t.clientUrl, (client) =>
  client.query(`
    create table sample (id int primary key, text text);
    insert into sample select n, repeat('x', 3000) from generate_series(1, 3000) as n;
    create view same as select *, 1 as one from sample;
    create function sample() returns int language sql as 'select 1'`),
)
const agent = new Agent({ keepAlive: true, maxSockets: 20 })
after(() => agent.destroy())

type Reply = {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
}
type RequestParts = { readonly headers?: Record<string, string>; readonly body?: Buffer | null }

/** Sends a request with any method, unlike fetch. */
function ask(method: string, path: string, { headers = {}, body = null }: RequestParts = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const type =
      body === null ? {} : { 'content-type': 'application/json', 'content-length': String(body.length) }
    const sent = request(t.url + path, { agent, method, headers: { ...type, ...headers } }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      )
      answer.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body ?? undefined)
  })
}

const targets = targetsOf(t)
const addressOf = ({ path }: Target) => path.replace(/\{\w+\}/g, 'sample')
const credential: Record<Target['credential'], Record<string, string>> = {
  none: {},
  session: { authorization: `Bearer ${session.token}` },
  key: { apikey: key.apiKey, 'x-service-client': 'default' },
  admin: { apikey: ADMIN_KEY },
}
const queryOf = ({ path }: Target): string => {
  if (path === '/data') return '?view=sample&eq_column=id&eq_value=1'
  return path.startsWith('/api/auth') ? '?token=AAAA' : ''
}

/** All methods of Node's parser except CONNECT, which is for proxies. */
const methods = METHODS.filter((method) => method !== 'CONNECT')
const byPath = Map.groupBy(targets, addressOf)

test('an unsupported method gets 405 in the envelope of its surface, with the allowed methods', async () => {
  assert.ok(methods.includes('QUERY') && methods.includes('TRACE') && byPath.size > 50)
  for (const [path, routes] of byPath) {
    // The pattern of another route may match as well.
    const allowed = t.service.book.methodsAt(path)
    for (const { method } of routes) assert.ok(allowed.includes(method))
    const others = methods.filter((method) => !allowed.includes(method))
    await Promise.all(
      others.map(async (method) => {
        const { status, headers, text } = await ask(method, path)
        const name = `${method} ${path}`
        assert.deepEqual([status, headers.allow], [405, allowed.join(', ')], name)
        assert.equal(headers['cache-control'], 'no-store', name)
        if (method === 'HEAD') return assert.equal(text, '')
        const { code, ...rest } = JSON.parse(text)
        const isAuth = routes[0]?.surface === 'auth'
        assert.equal(code, isAuth ? 'METHOD_NOT_ALLOWED' : 'method_not_allowed', name)
        assert.deepEqual(
          Object.keys(rest),
          isAuth ? ['message'] : ['status', 'message', 'error', 'request_id'],
          name,
        )
      }),
    )
  }
})

test('an unsupported method with any body gets 405, an unknown path 404', async () => {
  const bodies: readonly RequestParts[] = [
    { body: Buffer.from('{') },
    { body: Buffer.alloc(2 ** 20 + 10, 'a') },
    { body: Buffer.from('a=b'), headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    { headers: { 'content-type': 'text/plain' } },
  ]
  for (const method of ['QUERY', 'PUT', 'PATCH', 'DELETE', 'SEARCH'])
    for (const asked of bodies)
      for (const path of ['/ping', '/api/auth/ok', '/api/auth/get-session']) {
        assert.equal((await ask(method, path, asked)).status, 405, `${method} ${path}`)
        assert.equal((await ask(method, `${path}/nowhere`, asked)).status, 404, `${method} ${path}/nowhere`)
      }
})

/** Status and headers of a response, without those that differ per request, as do values of cookies. A stream has no length. */
const compared = ({ status, headers }: Reply): Record<string, unknown> => {
  const { date: _, 'x-request-id': __, connection: ___, 'set-cookie': cookies = [], ...rest } = headers
  const { 'content-length': length, 'transfer-encoding': encoding, 'keep-alive': ____, ...others } = rest
  const set = [cookies].flat().map((cookie) => String(cookie).replace(/=[^;]*/, ''))
  return { status, cookies: set, ...others, ...(encoding === undefined ? { length: length ?? '0' } : {}) }
}

/** The contents change between two requests. */
const MOVING = ['/metrics', '/health', '/admin/activity', '/admin/statements']

/** A provider's callback acts, and a token is minted. */
const HEAD_DOES_LESS = ['/api/auth/callback/{provider}', '/api/auth/token']

test('every GET route supports HEAD, with the same status and headers and no body', async () => {
  const gets = targets.filter(({ method }) => method === 'GET')
  assert.ok(gets.length > 20)
  for (const target of gets) {
    const path = addressOf(target) + queryOf(target)
    for (const headers of [credential[target.credential], {}]) {
      const [get, head] = [await ask('GET', path, { headers }), await ask('HEAD', path, { headers })]
      assert.equal(head.text, '', path)
      // The GET of a mailed link acts too, so its HEAD may differ; see the next test.
      const isLink = t.service.book
        .entries()
        .some((entry) => entry.path === target.path && entry.redirects.length > 0)
      if (isLink || HEAD_DOES_LESS.includes(target.path)) {
        assert.ok([200, get.status].includes(head.status), path)
        continue
      }
      const { length: _, ...differing } = compared(get)
      const { length: __, ...found } = compared(head)
      const isMoving = MOVING.includes(target.path)
      assert.deepEqual(isMoving ? found : compared(head), isMoving ? differing : compared(get), path)
    }
  }
})

test('HEAD of a mailed link does not act, and the link stays valid', async () => {
  const eve = await t.signUp('Eve')
  const headers = { authorization: `Bearer ${eve.token}` }
  const tokenOf = async () => {
    const [mail = ''] = await t.mails()
    return new URL(linkIn(mail), t.url).searchParams.get('token')
  }
  const user = async () => (await eve.get('/api/auth/get-session')).body?.user

  await t.anon.post('/api/auth/send-verification-email', { email: eve.email })
  const verify = `/api/auth/verify-email?token=${await tokenOf()}`
  for (let round = 0; round < 3; round++) assert.equal((await ask('HEAD', verify, { headers })).status, 200)
  assert.equal((await user()).emailVerified, false)
  assert.equal((await ask('GET', verify, { headers })).status, 200)
  assert.equal((await user()).emailVerified, true)

  t.advance(86_401_000)
  await eve.post('/api/auth/delete-user')
  const remove = `/api/auth/delete-user/callback?token=${await tokenOf()}`
  assert.equal((await ask('HEAD', remove, { headers })).status, 200)
  assert.equal((await user()).email, eve.email)
  assert.equal((await ask('GET', remove, { headers })).status, 200)
  assert.equal(await user(), undefined)
})

test('HEAD of streamed rows sends no body and releases the connection of the client', async () => {
  const headers = credential.key
  const path = '/data?view=same&eq_column=one&eq_value=1&limit=3000'
  const whole = await ask('GET', path, { headers })
  assert.equal(whole.headers['transfer-encoding'], 'chunked', 'the response is not streamed')
  const heads = await Promise.all(Array.from({ length: 30 }, () => ask('HEAD', path, { headers })))
  for (const { status, headers, text } of heads)
    assert.deepEqual([status, headers['content-type'], text], [200, whole.headers['content-type'], ''])
  const again = await ask('GET', path, { headers })
  assert.equal(again.text.length, whole.text.length)
})

test('all responses except static files and public keys have cache-control: no-store', async () => {
  const files = ['/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js', '/docs/favicon-32x32.png']
  const metadata = ['oauth-authorization-server', 'openid-configuration', 'jwks.json'].map(
    (name) => `/.well-known/${name}`,
  )
  const kept = [...files, ...metadata, '/api/auth/jwks', '/api/auth/.well-known/jwks.json']
  for (const target of targets) {
    const path = addressOf(target) + queryOf(target)
    for (const headers of [credential[target.credential], {}]) {
      const body = properBody(target)
      const { headers: answered } = await ask(target.method, path, { headers, body })
      const isStored = answered['cache-control'] !== 'no-store'
      assert.equal(
        isStored,
        kept.includes(target.path),
        `${target.method} ${path}: ${answered['cache-control']}`,
      )
      assert.ok(!isStored || answered['set-cookie'] === undefined)
    }
  }
})
