import assert from 'node:assert/strict'
import { test } from 'node:test'
import { warningsOf } from '#kernel/config/warnings.ts'
import { BROWSER, linkIn, PASSWORD, type TestService, testService } from '#test/harness.ts'

const DAY = 86_400_000

/** The link in the mail of every flow, by subject. */
async function linksOf(t: TestService): Promise<Record<string, string>> {
  const ada = await t.signUp('Ada')
  const callbackURL = '/app?x=1'
  await t.anon.post('/api/auth/send-verification-email', { email: ada.email, callbackURL })
  await t.anon.post('/api/auth/forget-password', { email: ada.email, redirectTo: callbackURL })
  await ada.post('/api/auth/change-email', { newEmail: `new-${ada.email}`, callbackURL })
  const first = await t.mails()
  await t.service.kernel.db
    .updateTable('user')
    .set({ emailVerified: true, emailProvenAt: new Date() })
    .where('id', '=', ada.id)
    .execute()
  await t.service.kernel.coherence.settle()
  await ada.post('/api/auth/change-email', { newEmail: `two-${ada.email}`, callbackURL })
  t.advance(DAY + 1)
  await ada.post('/api/auth/delete-user', { callbackURL })
  const mails = [...first, ...(await t.mails())].filter((mail) => /https?:\/\//.test(mail))
  return Object.fromEntries(
    mails.map((mail) => {
      const [, subject = ''] = /^Subject: (.*?)\r?$/m.exec(mail) ?? []
      const text = mail.replace(/=\r?\n/g, '').replaceAll('=3D', '=')
      const [link = ''] = /https?:\/\/[^\s"<]+/.exec(text) ?? []
      return [subject, link.replace(/localhost:\d+/, 'localhost').replace(/[\w-]{43}/, 'TOKEN')]
    }),
  )
}

const SUBJECTS = [
  'Verify your email address',
  'Reset your password',
  'Verify your new email address',
  'Confirm the change of your email address',
  'Delete your account',
] as const

const addressed = (...links: readonly string[]) =>
  Object.fromEntries(SUBJECTS.map((subject, index) => [subject, links[index]]))

const QUERY = 'token=TOKEN&callbackURL=%2Fapp%3Fx%3D1'
const AUTH = 'http://localhost/api/auth'

test('mails link to the pages of the service', async () => {
  const t = await testService()
  assert.deepEqual(
    await linksOf(t),
    addressed(
      `${AUTH}/confirm/verify-email?${QUERY}`,
      `${AUTH}/reset-password/TOKEN?callbackURL=%2Fapp%3Fx%3D1`,
      `${AUTH}/confirm/change-email?${QUERY}`,
      `${AUTH}/confirm/change-email?${QUERY}`,
      `${AUTH}/confirm/delete-user?${QUERY}`,
    ),
  )
  await t.stop()
})

test('auth.email.links names pages of the application instead, with token and callbackURL', async () => {
  const links = {
    verify: 'https://app.example.com/verify',
    change: 'https://app.example.com/change?lang=fr',
    delete: 'https://app.example.com/delete#/here',
    reset: 'https://app.example.com/reset',
  }
  // They take precedence over direct links.
  const t = await testService({ config: { auth: { email: { links, direct_links: true } } } })
  assert.deepEqual(
    await linksOf(t),
    addressed(
      `https://app.example.com/verify?${QUERY}`,
      `https://app.example.com/reset?${QUERY}`,
      `https://app.example.com/change?lang=fr&${QUERY}`,
      `https://app.example.com/change?lang=fr&${QUERY}`,
      `https://app.example.com/delete?${QUERY}#/here`,
    ),
  )
  await t.stop()
})

test('auth.email.direct_links mails the endpoints that act, and the start says what that costs', async () => {
  const t = await testService({ config: { auth: { email: { direct_links: true } } } })
  assert.deepEqual(
    await linksOf(t),
    addressed(
      `${AUTH}/verify-email?${QUERY}`,
      `${AUTH}/reset-password/TOKEN?callbackURL=%2Fapp%3Fx%3D1`,
      `${AUTH}/verify-email?${QUERY}`,
      `${AUTH}/verify-email?${QUERY}`,
      `${AUTH}/delete-user/callback?${QUERY}`,
    ),
  )
  assert.match(
    warningsOf(t.config).join('\n'),
    /direct_links .* mail scanners that open every link use them up/,
  )
  await t.stop()
})

test('the pages carry the name, the picture and the colour that are configured, and signing in follows', async () => {
  const t = await testService({
    config: {
      auth: {
        email: { sign_in_after_verification: true },
        pages: { name: 'Ada & <Co>', logo_url: 'https://cdn.example.com/a"b.png', accent: '#ffd500' },
      },
    },
  })
  const ada = await t.signUp('Ada')
  await t.anon.post('/api/auth/send-verification-email', { email: ada.email })
  const link = linkIn((await t.mails())[0] ?? '')
  const page = await t.anon.get(link, { headers: BROWSER })
  assert.match(page.text, /<span>Ada &amp; &lt;Co&gt;<\/span>/)
  assert.match(page.text, /<img src="https:\/\/cdn.example.com\/a&quot;b.png" alt="">/)
  assert.match(page.text, /--accent: #ffd500; --on-accent: #111/)
  assert.match(page.headers.get('content-security-policy') ?? '', /; img-src https:\/\/cdn.example.com; /)
  assert.equal(page.headers.get('set-cookie'), null)

  const token = new URL(link, t.url).searchParams.get('token')
  const verified = await t.anon.post('/api/auth/verify-email', { token, password: PASSWORD })
  const headers = { authorization: `Bearer ${verified.headers.get('set-auth-token')}` }
  assert.equal((await t.anon.get('/api/auth/get-session', { headers })).body.user.id, ada.id)
  await t.stop()
})
