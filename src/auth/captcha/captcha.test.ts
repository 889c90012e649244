import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { solveChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import type { Config } from '#kernel/config/config.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Actor, type Answer, PASSWORD, type TestService, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

/** A provider of this test: each test sets its answer, and its requests are recorded. */
const asked: Record<string, string>[] = []
let verdict: RequestListener | object = { success: true }
const { url } = await startLoopbackServer(async (request, response) => {
  asked.push(Object.fromEntries(new URLSearchParams(await text(request))))
  if (typeof verdict === 'function') (verdict as RequestListener)(request, response)
  else response.end(JSON.stringify(verdict))
})
const outbound = { allow_http: true, allow_networks: ['127.0.0.1'] }
const rate_limits = { enabled: false }

type Captcha = Config['auth']['captcha']
const withProvider = (provider: Captcha['provider'], more: Partial<Captcha> = {}): Promise<TestService> =>
  testService({
    config: {
      auth: {
        ...EVERY_FEATURE,
        captcha: { ...(provider && { provider }), secret: 'secret of the tests', verify_url: url, ...more },
      },
      outbound,
      rate_limits,
    },
  })

let count = 0
const newUser = () => ({ name: 'Ada', email: `ada-${++count}@example.com`, password: PASSWORD })
const signUp = (t: TestService, response?: string, body: object = newUser()): Promise<Answer> =>
  t.anon.post('/api/auth/sign-up/email', body, headersOf(response))
const headersOf = (response: string | undefined) =>
  response === undefined ? {} : { headers: { 'x-captcha-response': response } }
const codeOf = ({ status, body }: Answer) => [status, body?.code]
const [MISSING, WRONG, UNAVAILABLE] = [
  [400, 'MISSING_RESPONSE'],
  [403, 'VERIFICATION_FAILED'],
  [503, 'CAPTCHA_UNAVAILABLE'],
]

const turnstile = await withProvider('turnstile', {
  allowed_hostnames: ['app.example.com'],
  expected_action: 'join',
})

test('a stranger without a captcha gets no mail and no account, at every route that would give one', async () => {
  const email = 'nobody@example.com'
  const routes: Record<string, object> = {
    'sign-up/email': newUser(),
    'sign-in/email': { email, password: PASSWORD },
    'sign-in/username': { username: 'nobody', password: PASSWORD },
    'sign-in/social': { provider: 'google' },
    'sign-in/magic-link': { email },
    'forget-password': { email },
    'request-password-reset': { email },
    'send-verification-email': { email },
    'email-otp/send-verification-otp': { email, type: 'sign-in' },
    'email-otp/request-password-reset': { email },
    'forget-password/email-otp': { email },
  }
  asked.length = 0
  for (const [route, body] of Object.entries(routes)) {
    const { anon } = turnstile
    assert.deepEqual(codeOf(await anon.post(`/api/auth/${route}`, body)), MISSING, route)
    assert.deepEqual(codeOf(await anon.post(`/api/auth/${route}`, body, headersOf(''))), MISSING, route)
  }
  assert.deepEqual(asked, [])
  assert.deepEqual(await turnstile.mails(), [])
  assert.deepEqual(await turnstile.service.kernel.db.selectFrom('user').select('id').execute(), [])
})

test('the provider is asked with the secret, the solution and the address, and its answer decides', async () => {
  verdict = { success: true, hostname: 'app.example.com', action: 'join' }
  asked.length = 0
  assert.equal((await signUp(turnstile, 'solved')).status, 200)
  assert.deepEqual(asked, [{ secret: 'secret of the tests', response: 'solved', remoteip: '127.0.0.1' }])
  verdict = { success: false, 'error-codes': ['timeout-or-duplicate'] }
  assert.deepEqual(codeOf(await signUp(turnstile, 'used')), WRONG)
})

test('a solution for another page or another action is refused', async () => {
  for (const wrong of [
    { hostname: 'evil.example.com', action: 'join' },
    { action: 'join' },
    { hostname: 'app.example.com', action: 'leave' },
    { hostname: 'app.example.com' },
  ]) {
    verdict = { success: true, ...wrong }
    assert.deepEqual(codeOf(await signUp(turnstile, 'solved')), WRONG, JSON.stringify(wrong))
  }
})

test('a form with a mistake does not cost its solution', async () => {
  asked.length = 0
  assert.deepEqual(codeOf(await signUp(turnstile, 'solved', { email: 'x' })), [400, 'VALIDATION_ERROR'])
  assert.deepEqual(asked, [])
})

test('a provider that fails, or refuses the secret, lets nobody pass', async () => {
  const failures: (RequestListener | object)[] = [
    ((_request, response) => response.writeHead(500).end('{"success":true}')) satisfies RequestListener,
    ((_request, response) => response.writeHead(302, { location: '/' }).end()) satisfies RequestListener,
    ((_request, response) => response.end('success')) satisfies RequestListener,
    ((request) => void request.socket.destroy()) satisfies RequestListener,
    ((_request, response) =>
      response.end(`{"success":true,"x":"${'x'.repeat(70_000)}"}`)) satisfies RequestListener,
    { success: false, 'error-codes': ['invalid-input-secret'] },
  ]
  for (const [index, failure] of failures.entries()) {
    verdict = failure
    const answer = await signUp(turnstile, 'solved')
    assert.deepEqual(codeOf(answer), UNAVAILABLE, `${index}`)
    assert.equal(answer.headers.get('retry-after'), '1')
  }
  assert.ok(turnstile.log.some((line) => line.includes('captcha_misconfigured')))
  assert.ok(!turnstile.log.some((line) => line.includes('secret of the tests')))
  const closed = await testService({
    config: {
      auth: { captcha: { provider: 'turnstile', secret: 's', verify_url: url } },
      outbound: { allow_http: true },
    },
  })
  verdict = { success: true }
  assert.deepEqual(codeOf(await signUp(closed, 'solved')), UNAVAILABLE)
  assert.ok(closed.log.some((line) => line.includes('OutboundRefused')))
})

test('a session needs no captcha where it is known', async () => {
  verdict = { success: true, hostname: 'app.example.com', action: 'join' }
  const { body } = await signUp(turnstile, 'solved')
  const ask = (token: string) =>
    turnstile.anon.post(
      '/api/auth/request-password-reset',
      { email: body.user.email },
      { headers: { authorization: `Bearer ${token}` } },
    )
  assert.equal((await ask(body.token)).status, 200)
  assert.deepEqual(codeOf(await ask('A'.repeat(43))), MISSING)
})

test('hCaptcha is told the site key, and reCAPTCHA judged by its score', async () => {
  const hcaptcha = await withProvider('hcaptcha', { site_key: 'site' })
  verdict = { success: true }
  asked.length = 0
  assert.equal((await signUp(hcaptcha, 'solved')).status, 200)
  assert.equal(asked[0]?.sitekey, 'site')
  const recaptcha = await withProvider('recaptcha', { min_score: 0.7 })
  for (const [score, passes] of [
    [undefined, true],
    [0.7, true],
    [0.69, false],
    ['0.9', false],
  ]) {
    verdict = { success: true, score }
    assert.equal((await signUp(recaptcha, 'solved')).status, passes === true ? 200 : 403, `${score}`)
  }
})

const altcha = await withProvider('altcha', { altcha: { cost: 100, expires_in: 60_000 } })

type Changes = { readonly challenge?: object; readonly parameters?: object; readonly solution?: object }

/** Solves a challenge as the widget does. */
async function solved(anon: Actor, changes: Changes = {}): Promise<string> {
  const { body: challenge } = await anon.get('/api/auth/captcha/challenge')
  const solution = await solveChallenge({ challenge, deriveKey })
  const parameters = { ...challenge.parameters, ...changes.parameters }
  const sent = {
    challenge: { ...challenge, parameters, ...changes.challenge },
    solution: { ...solution, ...changes.solution },
  }
  return Buffer.from(JSON.stringify(sent)).toString('base64')
}

test('a proof of work passes once: of 50 parallel requests with one, one', async () => {
  const proof = await solved(altcha.anon)
  const answers = await Promise.all(Array.from({ length: 50 }, () => signUp(altcha, proof)))
  const passed = answers.filter(({ status }) => status === 200)
  assert.equal(passed.length, 1)
  for (const answer of answers.filter(({ status }) => status !== 200)) assert.deepEqual(codeOf(answer), WRONG)
  assert.deepEqual(codeOf(await signUp(altcha, proof)), WRONG)
})

test('a proof of work is for a challenge of this installation, as it was handed out', async () => {
  const other = await withProvider('altcha', { altcha: { cost: 100, expires_in: 60_000 } })
  assert.equal((await signUp(other, await solved(other.anon))).status, 200)
  const forged: Changes[] = [
    { parameters: { cost: 1 } },
    { parameters: { keyPrefix: '' } },
    { parameters: { expiresAt: 4_000_000_000 } },
    { parameters: { more: 1 } },
    { challenge: { signature: '0'.repeat(64) } },
    { challenge: { signature: '' } },
    { solution: { counter: -1 } },
    { solution: { counter: 1.5 } },
    { solution: { derivedKey: '00'.repeat(32) } },
    { solution: { derivedKey: '' } },
    { solution: { derivedKey: null } },
  ]
  for (const changes of forged)
    assert.deepEqual(
      codeOf(await signUp(altcha, await solved(altcha.anon, changes))),
      WRONG,
      JSON.stringify(changes),
    )
  for (const junk of ['x', 'bnVsbA==', Buffer.from('{}').toString('base64'), 'A'.repeat(5_000)])
    assert.deepEqual(codeOf(await signUp(altcha, junk)), WRONG, junk)
})

test('a challenge expires, and a used one is forgotten only then', async () => {
  const t = await withProvider('altcha', { altcha: { cost: 100, expires_in: 60_000 } })
  const late = await solved(t.anon)
  const challenge = await t.anon.get('/api/auth/captcha/challenge')
  assert.equal(challenge.headers.get('cache-control'), 'no-store')
  assert.equal((await signUp(t, await solved(t.anon))).status, 200)
  const rows = () =>
    t.service.kernel.db.selectFrom('verification').where('purpose', '=', 'captcha').select('expiresAt')
  const [row] = await rows().execute()
  assert.ok(
    row !== undefined && row.expiresAt.getTime() > Date.parse(challenge.headers.get('date') ?? '') + 50_000,
  )
  t.advance(61_000)
  assert.deepEqual(codeOf(await signUp(t, late)), WRONG)
})

test('without a provider nobody is asked, and there are no challenges', async () => {
  const t = await testService()
  assert.equal((await signUp(t)).status, 200)
  assert.equal((await t.anon.get('/api/auth/captcha/challenge')).status, 404)
})
