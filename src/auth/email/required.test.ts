import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointOf, linkIn, PASSWORD, testService } from '#test/harness.ts'

const t = await testService({ config: { auth: { email_password: { require_email_verification: true } } } })

const signUp = (email: string) =>
  t.anon.post('/api/auth/sign-up/email', { name: 'Ada', email, password: PASSWORD })
const signIn = (email: string) => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
const cookieOf = (answer: { headers: Headers }) => answer.headers.get('set-cookie')?.split(';')[0] ?? ''

test('no one signs in before the address is verified; the browser that signed up keeps its password', async () => {
  const up = await signUp('ada@example.com')
  assert.deepEqual([up.status, up.body.token, up.headers.get('set-auth-token')], [200, null, null])
  assert.doesNotMatch(up.headers.get('set-cookie') ?? '', /session-token/)
  const [mail = ''] = await t.mails()

  const early = await signIn('ada@example.com')
  assert.deepEqual([early.status, early.body.code], [403, 'EMAIL_NOT_VERIFIED'])
  assert.equal((await t.mails()).length, 1, 'a new mail is sent')
  await t.anon.post('/api/auth/sign-in/email', {
    email: 'ada@example.com',
    password: PASSWORD,
    callbackURL: '/app',
  })
  const [leading = ''] = await t.mails()
  assert.match(linkIn(leading), /&callbackURL=%2Fapp$/)
  const wrong = await t.anon.post('/api/auth/sign-in/email', {
    email: 'ada@example.com',
    password: 'wrong password',
  })
  assert.equal(wrong.body.code, 'INVALID_EMAIL_OR_PASSWORD')
  assert.deepEqual(await t.mails(), [])

  const followed = await t.anon.get(endpointOf(linkIn(mail)), { headers: { cookie: cookieOf(up) } })
  assert.equal(followed.status, 200, followed.text)
  assert.equal((await signIn('ada@example.com')).status, 200)
})

test('a stranger who signed up with a victim’s address does not get in when the victim follows the link', async () => {
  await signUp('victim@example.com')
  const [mail = ''] = await t.mails()
  assert.equal((await t.anon.get(endpointOf(linkIn(mail)))).status, 200)
  const refused = await signIn('victim@example.com')
  assert.deepEqual([refused.status, refused.body.code], [403, 'PASSWORD_CHANGE_REQUIRED'])
})

test('the mark of another browser keeps no password usable', async () => {
  await signUp('first@example.com')
  const [mail = ''] = await t.mails()
  const other = await signUp('second@example.com')
  await t.anon.get(endpointOf(linkIn(mail)), { headers: { cookie: cookieOf(other) } })
  assert.equal((await signIn('first@example.com')).status, 403)
})
