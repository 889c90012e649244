import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { banByOperator, setRoleByOperator } from '#auth/admin/operator.ts'
import { bytesFor, getBy, isFast, watchPaths } from '#test/fast-path.ts'
import { testService } from '#test/harness.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'

const PATH = '/api/auth/get-session'
const t = await testService({ config: { rate_limits: { enabled: false }, limits: { header: 4_096 } } })
const { kernel } = t.service
const paths = watchPaths(t)

/** Asks on the two paths: the answer of the second request is kept, if it can be, and that to the third one repeated. Returns the common one. */
async function bothFor(requests: string): Promise<string> {
  const bytes = await paths.slowly(() => bytesFor(t, requests))
  assert.equal(await bytesFor(t, requests), bytes)
  assert.equal(await bytesFor(t, requests), bytes)
  return bytes
}

const [ada, other] = [await t.signUp('Ada'), await t.signUp('Other')]

test('the answer to a session in memory is kept and then repeated, with the same bytes', async () => {
  const request = getBy((await t.signUp('Bea')).token)
  for (let round = 0; round < 2; round++) assert.equal(await isFast(t, paths, request), false)
  assert.equal(await isFast(t, paths, request), true)
  assert.match(await bothFor(request), /^HTTP\/1\.1 200 OK\r\n/)
  assert.ok(!t.log.some((line) => line.includes('fast_path_off')))
})

const root = await t.signUp('Root')
await setRoleByOperator(kernel, root.id, 'admin')
const [gone, banned] = [await t.signUp('Gone'), await t.signUp('Banned')]
await gone.post('/api/auth/sign-out')
await banByOperator(kernel, banned.id, { reason: null, expires: null })
const { token: jwt } = (await ada.get('/api/auth/token')).body
const { apiKey } = await t.key(['*'])
const { token: acting } = await impersonated(t, root, other, { parentId: await sessionIdOf(root) })

const tokens = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(ada.token, other.token, root.token) },
  fc.constantFrom(gone.token, banned.token, acting, jwt, apiKey, 'x'.repeat(43), ''),
)
const usual = <T>(value: T, ...others: T[]) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(value) }, fc.constantFrom(...others))

const authorizations = fc
  .tuple(tokens, tokens, usual('Bearer ', 'bearer ', 'BEARER\t', 'Bearer  ', 'Basic ', 'Token ', ''))
  .chain(([token, second, scheme]) =>
    usual(
      [`Authorization: ${scheme}${token}`],
      [`authorization: ${scheme}${token}  `],
      [`authorization: ${scheme}${token}`, `authorization: ${scheme}${token}`],
      [`authorization: ${scheme}${token}`, `authorization: ${scheme}${second}`],
      [`apikey: ${token}`],
      [],
    ),
  )

const MORE = [
  ...[
    'Accept: */*',
    'accept: application/json',
    'accept: application/json, text/plain, */*',
    'accept: text/html',
  ],
  ...[
    'accept: ',
    'accept: */*;q=0',
    'user-agent: curl/8',
    'accept-encoding: gzip',
    'accept-language: de',
    'sec-fetch-mode: cors',
  ],
  ...[
    'connection: keep-alive',
    'Connection: close',
    'connection: upgrade',
    'connection: keep-alive, te',
    'keep-alive: timeout=5',
  ],
  ...[
    'x-forwarded-for: 192.0.2.1',
    'x-forwarded-for: nonsense',
    'x-forwarded-proto: https',
    'forwarded: for=192.0.2.1',
  ],
  ...[
    'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    'x-request-id: mine',
    'x-request-id: <b>',
  ],
  ...[
    'origin: http://evil.example',
    'origin: null',
    'referer: http://evil.example/',
    'sec-fetch-site: cross-site',
  ],
  ...['x-service-session: 1', 'x-service-client: default', 'x-user-id: ada', 'x-service-cache: no'],
  ...[
    `cookie: service-auth.session-token=${ada.token}`,
    `cookie: service-auth.session-token=${gone.token}`,
    'cookie: a=b',
  ],
  ...[
    'content-length: 0',
    'content-type: application/json',
    'if-none-match: *',
    'range: bytes=0-1',
    'te: trailers',
  ],
  ...[
    'expect: 100-continue',
    'expect: nonsense',
    'x-http-method-override: POST',
    `x-long: ${'x'.repeat(5_000)}`,
  ],
]

const requests = fc
  .record({
    method: usual('GET', 'HEAD', 'POST', 'PUT', 'OPTIONS', 'QUERY'),
    target: usual(
      ...[
        PATH,
        `${PATH}?x=1`,
        `${PATH}?`,
        `${PATH}/`,
        `${PATH}#a`,
        '/api/auth/%67et-session',
        '/api/auth//get-session',
      ],
      ...[
        '/API/AUTH/get-session',
        `http://localhost${PATH}`,
        `${PATH}?${'x'.repeat(5_000)}`,
        `/api/auth/../auth/get-session`,
      ],
    ),
    version: usual('1.1', '1.0'),
    host: usual(
      ['Host: localhost'],
      [],
      ['host: localhost', 'host: localhost'],
      ['host: evil.example'],
      ['host: '],
    ),
    authorization: authorizations,
    more: fc.oneof(
      fc.subarray(MORE.slice(0, 3), { maxLength: 1 }),
      fc.uniqueArray(fc.constantFrom(...MORE), { maxLength: 3 }),
      fc.constantFrom(...MORE).map((line) => [line, line]),
    ),
    body: usual('', 'content-length: 2\r\n\r\n{}', 'transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'),
  })
  .chain(({ method, target, version, host, authorization, more, body }) =>
    fc
      .shuffledSubarray([...host, ...authorization, ...more], {
        minLength: host.length + authorization.length + more.length,
      })
      .map((headers) => {
        const end = body === '' ? '\r\n' : body
        return `${method} ${target} HTTP/${version}\r\n${headers.map((line) => `${line}\r\n`).join('')}${end}`
      }),
  )

test('whatever is asked, the answer is the same on both paths', async () => {
  let fast = 0
  const isSame = fc.asyncProperty(requests, async (request) => {
    await bothFor(request)
    if (await isFast(t, paths, request)) fast++
  })
  await fc.assert(isSame, { numRuns: 200, examples: [[getBy(ada.token)]] })
  assert.ok(fast > 0)
})
