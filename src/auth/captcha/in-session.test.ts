import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Answer, actor, endpointOf, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

const { url } = await startLoopbackServer((_request, response) => {
  response.end(JSON.stringify({ success: true }))
})
const t = await testService({
  config: {
    auth: {
      ...EVERY_FEATURE,
      captcha: { provider: 'turnstile', secret: 'secret of the tests', verify_url: url },
    },
    outbound: { allow_http: true, allow_networks: ['127.0.0.1'] },
    rate_limits: { enabled: false },
  },
})
const AUTH = '/api/auth'
const solved = { headers: { 'x-captcha-response': 'solved' } }
const codeOf = ({ status, body }: Answer) => [status, body?.code]
const MISSING = [400, 'MISSING_RESPONSE']

async function ada(email: string) {
  const { body } = await t.anon.post(
    `${AUTH}/sign-up/email`,
    { name: 'Ada', email, password: PASSWORD },
    solved,
  )
  return { authorization: `Bearer ${body.token}` }
}

const signInMails = (email: string): [path: string, body: object][] => [
  ['sign-in/magic-link', { email }],
  ['email-otp/send-verification-otp', { email, type: 'sign-in' }],
]

test('a session lets nobody sign up by mail without a captcha', async () => {
  const headers = await ada('ada@example.com')
  await t.mails()
  for (const [path, body] of signInMails('new@example.com')) {
    assert.deepEqual(codeOf(await t.anon.post(`${AUTH}/${path}`, body, { headers })), MISSING, path)
    const more = { headers: { ...headers, ...solved.headers } }
    assert.equal((await t.anon.post(`${AUTH}/${path}`, body, more)).status, 200, path)
  }
  assert.equal((await t.mails()).length, 2)
})

test('in a session, mails to the own address need none', async () => {
  const headers = await ada('own@example.com')
  for (const [path, body] of signInMails(' OWN@example.com'))
    assert.equal((await t.anon.post(`${AUTH}/${path}`, body, { headers })).status, 200, path)
})

test('the mail to an own address that has changed meanwhile is not sent, and so it adds no user', async () => {
  for (const [index, path] of ['sign-in/magic-link', 'email-otp/send-verification-otp'].entries()) {
    const [email, newEmail] = [`old${index}@example.com`, `new${index}@example.com`]
    const own = actor(t.url, await ada(email))
    await own.post(`${AUTH}/change-email`, { newEmail, password: PASSWORD })
    const link = endpointOf(linkIn((await t.mails()).at(-1) ?? ''))
    assert.equal((await own.post(`${AUTH}/${path}`, { email, type: 'sign-in' })).status, 200)
    // The mail is still in the queue.
    assert.equal((await own.get(link)).status, 200)
    assert.deepEqual(
      (await t.mails()).filter((mail) => mail.includes(`To: ${email}`)),
      [],
    )
  }
})
