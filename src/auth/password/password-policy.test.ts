import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import { linkIn, type TestService, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'
import { codeIn, otherThan } from '#test/mailed-codes.ts'

/** A breach service of this test: each test sets its answer, and its requests are recorded. */
const asked: { url: string | undefined; padding: string | string[] | undefined }[] = []
let answer: RequestListener = (_request, response) => response.end()
const { url } = await startLoopbackServer((request, response) => {
  asked.push({ url: request.url, padding: request.headers['add-padding'] })
  answer(request, response)
})
const outbound = { allow_http: true, allow_networks: ['127.0.0.1'] }
const breach_check_url = `${url}/range/`

const lax = await testService()
const strict = await testService({ config: { auth: { email_password: { refuse_common: true } } } })
const short = await testService({
  config: { auth: { email_password: { refuse_common: true, password_min_length: 4 } } },
})
const checking = await testService({
  config: { auth: { email_password: { breach_check_url }, email_otp: { enabled: true } }, outbound },
})

let count = 0
async function signUp(t: TestService, password: string): Promise<[number, string | undefined]> {
  const email = `ada-${++count}@example.com`
  const { status, body } = await t.anon.post('/api/auth/sign-up/email', { name: 'Ada', email, password })
  return [status, body.code]
}

test('length is counted in characters after NFKC, at both ends', async () => {
  assert.deepEqual(await signUp(lax, '1234567'), [400, 'PASSWORD_TOO_SHORT'])
  // Seven characters of four bytes and two code units each; then eight.
  assert.deepEqual(await signUp(lax, '🦊'.repeat(7)), [400, 'PASSWORD_TOO_SHORT'])
  assert.equal((await signUp(lax, '🦊'.repeat(8)))[0], 200)
  // Two ligatures of three letters each, and two more letters.
  assert.equal((await signUp(lax, 'ﬃﬃab'))[0], 200)
  assert.equal((await signUp(lax, 'x'.repeat(128)))[0], 200)
  assert.deepEqual(await signUp(lax, 'x'.repeat(129)), [400, 'PASSWORD_TOO_LONG'])
  assert.deepEqual(await signUp(lax, 'ﬃ'.repeat(43)), [400, 'PASSWORD_TOO_LONG'])
})

test('common passwords pass unless they are refused', async () => {
  assert.equal((await signUp(lax, 'password1'))[0], 200)
})

test('refuse_common refuses well-known passwords, in any case and width', async () => {
  for (const password of ['password1', 'PassWord1', 'iloveyou', 'Qwertyuiop', 'ｐａｓｓｗｏｒｄ'])
    assert.deepEqual(await signUp(strict, password), [400, 'PASSWORD_COMMON'], password)
  for (const password of ['123456', 'DRAGON', '1234'])
    assert.deepEqual(await signUp(short, password), [400, 'PASSWORD_COMMON'], password)
  assert.equal((await signUp(strict, 'correct horse battery'))[0], 200)
})

test('refuse_common holds wherever a password is chosen', async () => {
  const ada = await strict.signUp('Ada')
  const changed = await ada.post('/api/auth/change-password', {
    currentPassword: 'correct horse battery',
    newPassword: 'password123',
  })
  assert.deepEqual([changed.status, changed.body.code], [400, 'PASSWORD_COMMON'])
  await strict.anon.post('/api/auth/forget-password', { email: ada.email })
  const [mail = ''] = await strict.mails()
  const token = linkIn(mail).split('/').at(-1)
  const reset = await strict.anon.post('/api/auth/reset-password', { token, newPassword: 'password123' })
  assert.deepEqual([reset.status, reset.body.code], [400, 'PASSWORD_COMMON'])
})

const LEAKED = 'correct horse leaked'
const DIGEST = hash('sha1', LEAKED).toUpperCase()
const OTHER = '0'.repeat(35)

test('a password from a breach is refused, and the service learns five digits of its hash', async () => {
  answer = (_request, response) => response.end(`${OTHER}:3\r\n${DIGEST.slice(5)}:12\r\n`)
  asked.length = 0
  assert.deepEqual(await signUp(checking, LEAKED), [400, 'PASSWORD_COMPROMISED'])
  assert.deepEqual(asked, [{ url: `/range/${DIGEST.slice(0, 5)}`, padding: 'true' }])
})

test('padding and a hash with the same prefix are not a breach', async () => {
  answer = (_request, response) => response.end(`${DIGEST.slice(5)}:0\r\n${OTHER}:7\r\n`)
  assert.equal((await signUp(checking, LEAKED))[0], 200)
})

test('the breach service is not asked for who has no link and no code, and a refused password uses up neither', async () => {
  const { email } = await checking.signUp('Ada')
  const post = async (path: string, body: object) => {
    const { status, body: said } = await checking.anon.post(`/api/auth${path}`, body)
    return [status, said.code]
  }
  const byLink = (token: string | undefined, newPassword: string) =>
    post('/reset-password', { token, newPassword })
  const byCode = (otp: string, password: string) =>
    post('/email-otp/reset-password', { email, otp, password })
  await checking.mails()
  await post('/forget-password', { email })
  const [mail = ''] = await checking.mails()
  const [token, code] = [linkIn(mail).split('/').at(-1), codeIn(mail)]
  answer = (_request, response) => response.end(`${DIGEST.slice(5)}:12`)
  asked.length = 0
  assert.deepEqual(await byLink('A'.repeat(43), LEAKED), [400, 'INVALID_TOKEN'])
  assert.deepEqual(await byCode(otherThan(code), LEAKED), [400, 'INVALID_OTP'])
  assert.deepEqual(asked, [])
  assert.deepEqual(await byLink(token, LEAKED), [400, 'PASSWORD_COMPROMISED'])
  assert.deepEqual(await byCode(code, LEAKED), [400, 'PASSWORD_COMPROMISED'])
  assert.equal(asked.length, 2)
  assert.deepEqual(await byCode(code, 'correct horse battery'), [200, undefined])
})

test('when the breach service fails, the password passes and the log says so', async () => {
  const failures: RequestListener[] = [
    (_request, response) => response.writeHead(503).end(`${DIGEST.slice(5)}:12`),
    (_request, response) => response.writeHead(302, { location: `/other` }).end(),
    (request) => request.socket.destroy(),
    (_request, response) => response.end(`${OTHER}:1\r\n`.repeat(20_000)),
  ]
  for (const failure of failures) {
    answer = failure
    const logged = checking.log.length
    assert.equal((await signUp(checking, LEAKED))[0], 200)
    const lines = checking.log.slice(logged)
    assert.equal(lines.filter((line) => line.includes('breach_check_failed')).length, 1)
    assert.ok(!lines.some((line) => line.includes(LEAKED) || line.includes(DIGEST)))
  }
})

test('with breach_check_on_failure: closed, a password that cannot be checked is refused', async () => {
  const closed = await testService({
    config: { auth: { email_password: { breach_check_url, breach_check_on_failure: 'closed' } }, outbound },
  })
  answer = (_request, response) => response.writeHead(503).end()
  assert.deepEqual(await signUp(closed, LEAKED), [503, 'BREACH_CHECK_UNAVAILABLE'])
  answer = (_request, response) => response.end(`${OTHER}:3\r\n`)
  assert.equal((await signUp(closed, LEAKED))[0], 200)
})

test('requests to the breach service follow the rules of outbound requests', async () => {
  const closed = await testService({
    config: { auth: { email_password: { breach_check_url } }, outbound: { allow_http: true } },
  })
  answer = (_request, response) => response.end(`${DIGEST.slice(5)}:12`)
  asked.length = 0
  assert.equal((await signUp(closed, LEAKED))[0], 200)
  assert.deepEqual(asked, [])
  assert.ok(closed.log.some((line) => line.includes('OutboundRefused')))
})
