import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testService } from '#test/harness.ts'

const t = await testService({ config: { auth: { trusted_origins: ['https://app.example.com'] } } })
const own = new URL(t.service.kernel.publicUrl())

const HOSTILE = [
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
  `${own.origin}/x`,
  `http://127.0.0.1:${own.port}/`,
  `http://[::1]:${own.port}/`,
]

/** Every place where a request can name a target: found in the routes, so that a new one is not forgotten. */
const places = t.service.book
  .entries()
  .flatMap(({ method, path, redirects }) => redirects.map((name) => ({ method, path, name })))

test('the list of places is what the surface has', () => {
  assert.deepEqual(places.map(({ method, path, name }) => `${method} ${path} ${name}`).sort(), [
    'GET /api/auth/delete-user/callback callbackURL',
    'GET /api/auth/reset-password/{token} callbackURL',
    'GET /api/auth/verify-email callbackURL',
    'POST /api/auth/change-email callbackURL',
    'POST /api/auth/delete-user callbackURL',
    'POST /api/auth/forget-password redirectTo',
    'POST /api/auth/request-password-reset redirectTo',
    'POST /api/auth/send-verification-email callbackURL',
    'POST /api/auth/sign-in/email callbackURL',
    'POST /api/auth/sign-in/username callbackURL',
    'POST /api/auth/sign-up/email callbackURL',
  ])
})

for (const { method, path, name } of places) {
  test(`${method} ${path} refuses every hostile ${name} and takes the good ones`, async () => {
    const ada = await t.signUp('Ada')
    const bodies: Record<string, object> = {
      '/api/auth/sign-up/email': { name: 'Eve', email: 'eve@example.com', password: PASSWORD },
      '/api/auth/sign-in/email': { email: ada.email, password: PASSWORD },
      '/api/auth/sign-in/username': { username: 'ada', password: PASSWORD },
      '/api/auth/change-email': { newEmail: 'new@example.com' },
      '/api/auth/delete-user': { token: 'A'.repeat(43) },
    }
    const ask = (target: string) => {
      const url = path.replace('{token}', 'A'.repeat(43))
      const query = new URLSearchParams({ token: 'A'.repeat(43), [name]: target })
      if (method === 'GET') return ada.get(`${url}?${query}`)
      return ada.post(url, { email: ada.email, ...bodies[path], [name]: target })
    }
    for (const target of HOSTILE) {
      const answer = await ask(target)
      assert.deepEqual(
        [answer.status, answer.body?.code],
        [403, 'INVALID_CALLBACK_URL'],
        JSON.stringify(target),
      )
      assert.equal(answer.headers.get('location'), null)
    }
    for (const target of GOOD) assert.notEqual((await ask(target)).status, 403, target)
  })
}
