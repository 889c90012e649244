import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, PASSWORD, testService } from '#test/harness.ts'

const TRUSTED = 'https://app.example.com'
const t = await testService({ config: { auth: { trusted_origins: [TRUSTED, 'http://localhost:3000'] } } })
const { email, token } = await t.signUp('Ada')
const signIn = (body: Record<string, unknown>, headers: Record<string, string> = {}) =>
  t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD, ...body }, { headers })

const { port } = new URL(t.url)

test('a page of a trusted origin may use the session, and reads the answer; another may not', async () => {
  const cookie = `service-auth.session-token=${token}`
  const ask = (origin: string) => t.anon.get('/api/auth/get-session', { headers: { cookie, origin } })
  const trusted = await ask(TRUSTED)
  assert.equal(trusted.headers.get('access-control-allow-origin'), TRUSTED)
  assert.equal(trusted.headers.get('access-control-allow-credentials'), 'true')
  assert.match(trusted.headers.get('access-control-expose-headers') ?? '', /set-auth-token/)
  assert.match(trusted.headers.get('vary') ?? '', /Origin/)
  for (const origin of [
    'https://evil.example',
    `${TRUSTED}.evil.example`,
    'null',
    'https://app.example.com:444',
  ]) {
    const foreign = await ask(origin)
    assert.equal(foreign.headers.get('access-control-allow-origin'), null, origin)
    assert.equal(foreign.headers.get('access-control-allow-credentials'), null, origin)
  }
})

test('a preflight is answered for trusted origins only', async () => {
  const preflight = (
    origin: string,
    headers: Record<string, string> = { 'access-control-request-method': 'POST' },
  ) => t.anon.send('OPTIONS', '/api/auth/sign-in/email', { headers: { origin, ...headers } })
  const trusted = await preflight(TRUSTED, {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type,x-service-client',
  })
  assert.equal(trusted.status, 204)
  assert.equal(trusted.headers.get('access-control-allow-origin'), TRUSTED)
  assert.equal(trusted.headers.get('access-control-allow-headers'), 'content-type,x-service-client')
  assert.match(trusted.headers.get('access-control-allow-methods') ?? '', /POST.*DELETE/)
  assert.equal((await preflight(TRUSTED, {})).status, 204)

  const foreign = await preflight('https://evil.example')
  assert.equal(foreign.status, 405)
  assert.equal(foreign.headers.get('access-control-allow-origin'), null)
  assert.match(foreign.body.message, /auth\.trusted_origins/)
  const gateway = await t.anon.send('OPTIONS', '/gateway/fetch', {
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  })
  assert.equal(gateway.status, 405)
  assert.match(gateway.body.error, /auth\.trusted_origins/)
  const plain = await t.anon.send('OPTIONS', '/gateway/fetch', {
    headers: { origin: 'https://evil.example' },
  })
  assert.doesNotMatch(plain.text, /trusted_origins/)
})

const signOut = (by: Actor, headers: Record<string, string>) => by.post('/api/auth/sign-out', {}, { headers })

test('a state-changing request by cookie must come from our own origin or a trusted one', async () => {
  const cases: readonly (readonly [headers: Record<string, string>, code: string | undefined])[] = [
    [{ origin: TRUSTED }, undefined],
    [{ origin: `http://localhost:${port}` }, undefined],
    [{ 'sec-fetch-site': 'same-origin' }, undefined],
    [{ 'sec-fetch-site': 'none' }, undefined],
    [{ referer: `${TRUSTED}/page?a=b` }, undefined],
    [{}, undefined],
    [{ origin: 'https://evil.example' }, 'INVALID_ORIGIN'],
    [{ origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }, 'INVALID_ORIGIN'],
    [{ origin: 'https://evil.example', referer: TRUSTED }, 'INVALID_ORIGIN'],
    [{ origin: `${TRUSTED}.evil.example` }, 'INVALID_ORIGIN'],
    [{ origin: 'null' }, 'MISSING_OR_NULL_ORIGIN'],
    [{ origin: 'null', 'sec-fetch-site': 'same-origin' }, 'MISSING_OR_NULL_ORIGIN'],
    [{ 'sec-fetch-site': 'cross-site' }, 'INVALID_ORIGIN'],
    [{ 'sec-fetch-site': 'same-site', referer: TRUSTED }, 'INVALID_ORIGIN'],
    [{ referer: 'https://evil.example/https://app.example.com' }, 'INVALID_ORIGIN'],
    [{ referer: 'nonsense' }, 'INVALID_ORIGIN'],
  ]
  for (const [headers, code] of cases) {
    const { token } = await t.signUp('Ada')
    const answer = await signOut(t.anon, { cookie: `service-auth.session-token=${token}`, ...headers })
    assert.deepEqual(
      [answer.status, answer.body.code],
      code === undefined ? [200, undefined] : [403, code],
      JSON.stringify(headers),
    )
  }
  const bob = await t.signUp('Bob')
  assert.equal(
    (await signOut(bob, { origin: 'https://evil.example' })).status,
    200,
    'a Bearer token is not a cookie',
  )
})

test('sign-in and sign-up from a foreign page are refused without any cookie, and accepted from a trusted page', async () => {
  const signUp = (origin: string) =>
    t.anon.post(
      '/api/auth/sign-up/email',
      { name: 'A', email: `${origin.length}@example.com`, password: PASSWORD },
      { headers: { origin } },
    )
  const foreign = await signIn({}, { origin: 'https://evil.example' })
  assert.equal(foreign.body.code, 'INVALID_ORIGIN')
  assert.match(foreign.body.message, /server\.public_url .*auth\.trusted_origins/)
  assert.equal((await signIn({}, { origin: 'null' })).body.code, 'MISSING_OR_NULL_ORIGIN')
  assert.equal((await signIn({}, { origin: TRUSTED })).status, 200)
  assert.equal((await signUp('https://evil.example')).body.code, 'INVALID_ORIGIN')
  assert.equal((await signUp(TRUSTED)).status, 200)
})

test('with require_origin a cookie request without Origin, Sec-Fetch-Site and Referer is refused', async () => {
  const strict = await testService({ config: { auth: { require_origin: true } } })
  const ada = await strict.signUp('Ada')
  const headers = { cookie: `service-auth.session-token=${ada.token}` }
  assert.equal((await signOut(strict.anon, headers)).body.code, 'MISSING_OR_NULL_ORIGIN')
  assert.equal((await strict.anon.get('/api/auth/get-session', { headers })).status, 200)
  assert.equal((await signOut(ada, {})).status, 200)
})

test('in production loopback is not an own origin', async () => {
  const production = await testService({
    config: {
      production: true,
      server: { public_url: 'https://auth.example.com' },
      rate_limits: { enabled: false },
    },
  })
  const ask = (callbackURL: string) =>
    production.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD, callbackURL })
  assert.equal((await ask('https://auth.example.com/a')).body.code, 'INVALID_EMAIL_OR_PASSWORD')
  for (const target of [
    production.url,
    `http://localhost:${new URL(production.url).port}`,
    'http://auth.example.com/',
  ])
    assert.equal((await ask(target)).body.code, 'INVALID_CALLBACK_URL', target)
})

test('no link redirects to a place that was not judged, whether the route takes that member or not', async () => {
  const ada = await t.signUp('Ada')
  const { paths } = (await t.anon.get('/openapi.json')).body
  const errorPage = `${t.service.kernel.publicUrl()}/api/auth/error`
  const links = Object.keys(paths).filter((path) => path.startsWith('/api/auth/') && 'get' in paths[path])
  assert.ok(links.includes('/api/auth/verify-email') && links.includes('/api/auth/delete-user/callback'))
  for (const link of links)
    for (const name of ['callbackURL', 'errorCallbackURL', 'newUserCallbackURL', 'redirectTo'])
      for (const target of ['https://evil.example/', 'javascript:alert(1)', 'a&errorCallbackURL=b']) {
        const path = `${link.replace('{token}', 'x')}?token=x&${name}=${target}`
        const { status, headers } = await ada.get(path, { headers: { accept: 'application/json' } })
        assert.ok(status < 500, `${status} of ${path}`)
        // The callback of an identity provider shows failures on the page for errors.
        const location = headers.get('location') ?? errorPage
        assert.ok(location.startsWith(errorPage) && !location.includes(target), `${path}: ${location}`)
      }
})

test('rate limits count by rule and address, say when to retry, and do not count requests with a session', async () => {
  const rule = (requests: number) => ({ requests, window: 60_000 })
  const rules = { sign_in: rule(3), sign_up: rule(50), default: rule(4) }
  const limited = await testService({ config: { rate_limits: { enabled: true, rules } } })
  const ada = await limited.signUp('Ada')
  const ask = () =>
    limited.anon.post('/api/auth/sign-in/email', { email: ada.email, password: 'wrong password' })
  for (let round = 0; round < 3; round++) assert.equal((await ask()).status, 401)
  const refused = await ask()
  assert.deepEqual([refused.status, refused.body.code], [429, 'TOO_MANY_REQUESTS'])
  assert.match(refused.headers.get('retry-after') ?? '', /^([1-9]|[1-5]\d|60)$/)
  assert.equal(refused.headers.get('x-retry-after'), refused.headers.get('retry-after'))

  for (let round = 0; round < 20; round++) assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  const guess = (token: string) =>
    limited.anon.get('/api/auth/get-session', { headers: { authorization: `Bearer ${token}` } })
  const statuses: number[] = []
  for (let round = 0; round < 6; round++) statuses.push((await guess('A'.repeat(42) + round)).status)
  assert.deepEqual(statuses, [401, 401, 401, 401, 429, 429], 'guesses of a token are counted')
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
})

test('X-Forwarded-For is used from trusted proxies only, by its last untrusted hop', async () => {
  const rules = { sign_in: { requests: 2, window: 60_000 } }
  const limit = { enabled: true, rules }
  const ask = (by: Actor, from: string) =>
    by.post(
      '/api/auth/sign-in/email',
      { email, password: PASSWORD },
      { headers: { 'x-forwarded-for': from } },
    )

  const direct = await testService({ config: { rate_limits: limit } })
  const statuses: number[] = []
  for (const from of ['203.0.113.1', '203.0.113.2', '203.0.113.3'])
    statuses.push((await ask(direct.anon, from)).status)
  assert.deepEqual(statuses, [401, 401, 429], 'invented addresses gain nothing')

  const proxied = await testService({
    config: { rate_limits: limit, server: { trusted_proxies: ['127.0.0.0/8'] } },
  })
  const hops = ['203.0.113.1', '1.1.1.1, 203.0.113.1', '2.2.2.2, 203.0.113.1', '203.0.113.2']
  const through: number[] = []
  for (const from of hops) through.push((await ask(proxied.anon, from)).status)
  assert.deepEqual(through, [401, 401, 429, 401])
})

test('every answer has headers against framing, sniffing and caching', async () => {
  for (const path of [
    '/api/auth/ok',
    '/api/auth/get-session',
    '/api/auth/nowhere',
    '/',
    '/nowhere',
    '/api/auth/error?error=BANNED_USER',
  ]) {
    const { headers } = await t.anon.get(path)
    assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
    assert.equal(headers.get('x-frame-options'), 'DENY', path)
    assert.equal(headers.get('referrer-policy'), 'no-referrer', path)
    assert.equal(headers.get('cache-control'), 'no-store', path)
    assert.match(
      headers.get('content-security-policy') ?? '',
      /^default-src 'none';.*frame-ancestors 'none'/,
      path,
    )
    assert.equal(headers.get('x-powered-by'), null)
    assert.equal(headers.get('server'), null)
  }
})

test('the error page shows known codes only, and no text of a link', async () => {
  const page = (query: string) => t.anon.get(`/api/auth/error${query}`)
  const known = await page('?error=banned_user')
  assert.match(known.text, /BANNED_USER/)
  assert.match(known.headers.get('content-type') ?? '', /text\/html/)
  for (const error of [
    '<script>alert(1)</script>',
    '"><img src=x>',
    'constructor',
    '__proto__',
    'TOSTRING',
    'evil',
  ]) {
    const { status, text } = await page(`?error=${encodeURIComponent(error)}`)
    assert.equal(status, 200)
    assert.ok(!text.includes(error), error)
    assert.match(text, /Something went wrong/)
  }
})
