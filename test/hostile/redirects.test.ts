import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { withQuery } from '#auth/redirect.ts'
import { ownOrigins, redirectTarget } from '#kernel/http/origins.ts'
import { PASSWORD, testService } from '#test/harness.ts'
import { sampled } from '#test/sample.ts'
import { anyTarget, goodPath } from './any-target.ts'
import { targetsOf } from './routes.ts'

/** An identity provider that no test visits. */
const PROVIDER = 'https://acme.example'
const ACME = {
  type: 'oauth2',
  ...{ client_id: 'gatehouse', authorization_url: `${PROVIDER}/authorize` },
  ...{ token_url: `${PROVIDER}/token`, userinfo_url: `${PROVIDER}/user` },
} as const

const t = await testService({
  config: { auth: { trusted_origins: ['https://app.example.com'], social: { providers: { acme: ACME } } } },
})
const own = new URL(t.service.kernel.publicUrl())

const HOSTILE = [
  `//${own.host}`,
  `//${own.host}/welcome`,
  '//evil.example',
  '///evil.example',
  '////evil.example',
  '/\\evil.example',
  '/\\/evil.example',
  '\\\\evil.example',
  '\\/evil.example',
  '/%2fevil.example',
  '/%2Fevil.example',
  '/%5cevil.example',
  '/%5Cevil.example',
  '/\t/evil.example',
  '/\n/evil.example',
  ' //evil.example',
  '\u0009//evil.example',
  'https:evil.example',
  'https:/evil.example',
  'https:///evil.example',
  'https:\\\\evil.example',
  'http:evil.example',
  'https://evil.example',
  'https://evil.example/https://app.example.com',
  'https://app.example.com.evil.example',
  'https://app.example.comevil.example',
  'https://app.example.com@evil.example',
  'https://app.example.com:443@evil.example',
  'https://user:pass@app.example.com',
  'https://@app.example.com',
  'https://app.example.com%2eevil.example',
  'https://app.example.com%00.evil.example',
  'https://app.example.com\\@evil.example',
  'https://app.example.com\\.evil.example',
  'https://app\u3002example\u3002com.evil.example',
  'https://evil\u3002example',
  'https://\u0430pp.example.com',
  'https://app.example.com:8443',
  'http://app.example.com',
  'ftp://app.example.com',
  'ws://app.example.com',
  `http://${own.hostname}.evil.example:${own.port}`,
  `http://${own.hostname}:${own.port}.evil.example`,
  `http://${own.host}@evil.example`,
  `http://${own.hostname}:1`,
  `https://${own.host}`,
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  'java\nscript:alert(1)',
  'data:text/html,<script>alert(1)</script>',
  'vbscript:msgbox(1)',
  'file:///etc/passwd',
  'evil.example',
  'evil.example/path',
  '.evil.example',
  '@evil.example',
  '?next=//evil.example',
  '#//evil.example',
  '',
  'http://[::ffff:1.2.3.4]',
  'http://0x7f000001',
  'http://2130706433',
  'null',
  'welcome',
  '\u0001//evil.example',
  '/\u2044evil.example',
  '/\uff0fevil.example',
  'blob:https://app.example.com/1',
  'about:blank',
  'https:///app.example.com',
  'https://evil.example#@app.example.com',
  'https://app.example.com.',
  'https://*.example.com/',
  `/${'a'.repeat(3_000)}`,
  // URL parsers normalise these to `//evil.example`.
  '/.//evil.example',
  '/././/evil.example',
  '/x/..//evil.example',
  '/x/../y/..//evil.example',
  '/..//evil.example',
  '/%2e//evil.example',
  '/%2E%2e//evil.example',
  '/x/%2e%2e//evil.example',
  '/x/.%2E//evil.example/?a#b',
  '/./%2fevil.example',
  '/x/../%5cevil.example',
  'https://app.example.com/.//evil.example',
  'https://app.example.com//evil.example',
  `${own.origin}/x/..//evil.example`,
  // Endpoints of the auth surface: a redirect from our own page would look like a same-site request.
  '/api/auth/verify-email?token=x',
  '/api/auth/delete-user/callback?token=x',
  '/api/x/../auth/verify-email?token=x',
  '/api/auth/%76erify-email?token=x',
  '/api//auth/verify-email?token=x',
  '/api/%2fauth///magic-link/verify?token=x',
  '/%61pi/auth/verify-email?token=x',
  `${own.origin}/api/auth/verify-email?token=x`,
  `http://127.0.0.1:${own.port}/api/auth/verify-email?token=x`,
]

const GOOD = [
  '/',
  '/welcome',
  '/welcome?next=//evil.example#x',
  'https://app.example.com',
  'https://app.example.com/a?b=c',
  'https://app.example.com:443/a',
  'HTTPS://APP.EXAMPLE.COM/a',
  '/a/../b',
  '/@evil.example',
  '/https://evil.example',
  '/%E2%98%83',
  '/api/auth/error?error=x',
  '/api/authors',
  'https://app.example.com/api/auth/callback',
  `${own.origin}/x`,
  `http://127.0.0.1:${own.port}/`,
  `http://[::1]:${own.port}/`,
]

/** All request members that name a redirect target, taken from the routes so that none is forgotten. */
const places = t.service.book
  .entries()
  .flatMap(({ method, path, redirects }) => redirects.map((name) => ({ method, path, name })))

test('the routes with redirect targets are known', () => {
  assert.deepEqual(places.map(({ method, path, name }) => `${method} ${path} ${name}`).sort(), [
    'GET /api/auth/confirm/change-email callbackURL',
    'GET /api/auth/confirm/delete-user callbackURL',
    'GET /api/auth/confirm/reset-password callbackURL',
    'GET /api/auth/confirm/verify-email callbackURL',
    'GET /api/auth/delete-user/callback callbackURL',
    'GET /api/auth/reset-password/{token} callbackURL',
    'GET /api/auth/verify-email callbackURL',
    'POST /api/auth/change-email callbackURL',
    'POST /api/auth/confirm/change-email callbackURL',
    'POST /api/auth/confirm/delete-user callbackURL',
    'POST /api/auth/confirm/reset-password callbackURL',
    'POST /api/auth/confirm/verify-email callbackURL',
    'POST /api/auth/delete-user callbackURL',
    'POST /api/auth/forget-password redirectTo',
    'POST /api/auth/link-social callbackURL',
    'POST /api/auth/link-social errorCallbackURL',
    'POST /api/auth/reauthenticate callbackURL',
    'POST /api/auth/reauthenticate errorCallbackURL',
    'POST /api/auth/request-password-reset redirectTo',
    'POST /api/auth/send-verification-email callbackURL',
    'POST /api/auth/sign-in/email callbackURL',
    'POST /api/auth/sign-in/social callbackURL',
    'POST /api/auth/sign-in/social errorCallbackURL',
    'POST /api/auth/sign-in/social newUserCallbackURL',
    'POST /api/auth/sign-in/username callbackURL',
    'POST /api/auth/sign-up/email callbackURL',
  ])
})

test('every member named like a redirect target is validated as one', () => {
  const named = targetsOf(t).flatMap(({ method, path, query, body }) =>
    [...Object.keys(query), ...Object.keys(body?.properties ?? {})]
      .filter((name) => /(callback_?url|redirect_?(to|ur[il]))$/i.test(name))
      .map((name) => `${method} ${path} ${name}`),
  )
  assert.deepEqual(named.sort(), places.map(({ method, path, name }) => `${method} ${path} ${name}`).sort())
})

const { kernel } = t.service
const targets = anyTarget(['evil.example', 'app.example.com', own.host, own.hostname, 'localhost'])

/** Pages from which a browser may follow a Location. */
const PAGES = [`${own.origin}/`, `${own.origin}/api/auth/verify-email?token=a`, 'https://gate.example/a/b/']
const isAllowedFrom = (page: string, { origin }: URL) =>
  origin === new URL(page).origin || ownOrigins(kernel).has(origin)

test('a browser resolves every accepted target to our own origin or a trusted one', () => {
  fc.assert(
    fc.property(targets, (target) => {
      const accepted = redirectTarget(kernel, target)
      if (accepted !== undefined) isSafe(target, accepted)
    }),
    { numRuns: 20_000 },
  )
})

test('paths of the own application and URLs of a trusted origin are accepted', () => {
  fc.assert(
    fc.property(fc.constantFrom('', own.origin, 'https://app.example.com'), goodPath, (origin, path) => {
      const target = `${origin}${path}`
      isSafe(target, redirectTarget(kernel, target) ?? assert.fail(target))
    }),
    { numRuns: 2_000 },
  )
})

function isSafe(target: string, accepted: string): void {
  assert.equal(redirectTarget(kernel, accepted), accepted, 'normalisation is not idempotent')
  assert.match(accepted, /^[!-~]+$/)
  for (const page of PAGES) {
    const resolved = new URL(accepted, page)
    assert.equal(resolved.href, new URL(target, page).href, 'normalisation changed the target')
    assert.ok(isAllowedFrom(page, resolved), resolved.href)
    assert.doesNotMatch(resolved.pathname, /^\/([\\/]|%2f|%5c)/i)
    const sent = new URL(withQuery(accepted, { token: 'T', error: 'E' }), page)
    assert.deepEqual(
      [sent.origin, sent.pathname, sent.hash],
      [resolved.origin, resolved.pathname, resolved.hash],
    )
    assert.deepEqual([sent.searchParams.get('token'), sent.searchParams.get('error')], ['T', 'E'])
  }
}

for (const [turn, { method, path, name }] of places.entries()) {
  test(`${method} ${path} rejects hostile values of ${name} and accepts valid ones`, async () => {
    const ada = await t.signUp('Ada')
    const bodies: Record<string, object> = {
      '/api/auth/sign-up/email': { name: 'Eve', email: 'eve@example.com', password: PASSWORD },
      '/api/auth/sign-in/email': { email: ada.email, password: PASSWORD },
      '/api/auth/sign-in/username': { username: 'ada', password: PASSWORD },
      '/api/auth/sign-in/social': { provider: 'acme' },
      '/api/auth/link-social': { provider: 'acme' },
      '/api/auth/reauthenticate': { provider: 'acme' },
      '/api/auth/change-email': { newEmail: 'new@example.com' },
      '/api/auth/delete-user': { token: 'A'.repeat(43) },
    }
    const ask = (target: string) => {
      const url = path.replace('{token}', 'A'.repeat(43))
      const query = new URLSearchParams({ token: 'A'.repeat(43), [name]: target })
      if (method === 'GET') return ada.get(`${url}?${query}`)
      return ada.post(url, { email: ada.email, ...bodies[path], [name]: target })
    }
    for (const target of sampled(HOSTILE, 4, turn)) {
      const answer = await ask(target)
      assert.deepEqual(
        [answer.status, answer.body?.code],
        [403, 'INVALID_CALLBACK_URL'],
        JSON.stringify(target),
      )
      assert.equal(answer.headers.get('location'), null)
    }
    for (const target of GOOD) assert.notEqual((await ask(target)).status, 403, target)
    for (const target of sampled(fc.sample(targets, 60), 4)) {
      const accepted = redirectTarget(kernel, target)
      const answer = await ask(target)
      const isRefused = ['INVALID_CALLBACK_URL', 'INVALID_TEXT'].includes(answer.body?.code)
      assert.equal(isRefused, accepted === undefined, JSON.stringify(target))
      const sent = answer.headers.get('location') ?? answer.body?.url ?? undefined
      if (accepted === undefined) assert.equal(sent, undefined)
      else if (sent?.startsWith(`${PROVIDER}/authorize?`)) continue
      else if (sent !== undefined) assert.ok(isAllowedFrom(t.url, new URL(sent, t.url)), sent)
    }
  })
}
