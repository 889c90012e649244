import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linkIn, PASSWORD, testService } from '#test/harness.ts'
import { proveAddress } from '#test/proven-address.ts'

const t = await testService()
const NEW = 'another horse staple'
const DAY = 86_400_000

const signIn = (email: string, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })

async function resetToken(email: string): Promise<string> {
  await t.anon.post('/api/auth/forget-password', { email })
  const [mail = ''] = await t.mails()
  return linkIn(mail).split('/').at(-1) ?? ''
}

test('a reset link sets the password, ends every session, and works once', async () => {
  const ada = await t.signUp('Ada')
  const token = await resetToken(ada.email)
  const reset = () => t.anon.post('/api/auth/reset-password', { newPassword: NEW, token })
  assert.deepEqual((await reset()).body, { status: true })
  assert.equal((await ada.get('/api/auth/get-session')).status, 401)
  assert.deepEqual(
    [(await signIn(ada.email, PASSWORD)).status, (await signIn(ada.email, NEW)).status],
    [401, 200],
  )
  const [notice = ''] = await t.mails()
  assert.match(notice, /Subject: Your password was changed/)
  const again = await reset()
  assert.deepEqual([again.status, again.body.code], [400, 'INVALID_TOKEN'])
})

test('forget-password answers known and unknown addresses alike', async () => {
  const ada = await t.signUp('Ada')
  for (const path of ['/api/auth/forget-password', '/api/auth/request-password-reset']) {
    const known = await t.anon.post(path, { email: ada.email })
    const unknown = await t.anon.post(path, { email: 'nobody@example.com' })
    assert.deepEqual([known.status, known.body], [unknown.status, unknown.body])
    assert.deepEqual(known.body, { status: true, message: 'If there is such an account, a link was sent' })
  }
  assert.equal((await t.mails()).length, 2)
})

test('the link of a reset mail redirects to the callback with the token, or with the error', async () => {
  const ada = await t.signUp('Ada')
  await t.anon.post('/api/auth/forget-password', { email: ada.email, redirectTo: '/reset?step=2' })
  const [mail = ''] = await t.mails()
  const good = await t.anon.get(linkIn(mail))
  assert.equal(good.status, 302)
  const token = /^\/reset\?step=2&token=([\w-]{43})$/.exec(good.headers.get('location') ?? '')?.[1] ?? ''
  assert.equal((await t.anon.get(`/api/auth/reset-password/${token}`)).body.token, token)

  const bad = await t.anon.get('/api/auth/reset-password/nothing?callbackURL=%2Freset')
  assert.equal(bad.headers.get('location'), '/reset?error=INVALID_TOKEN')
  const bare = await t.anon.get('/api/auth/reset-password/nothing')
  assert.deepEqual([bare.status, bare.body.code], [400, 'INVALID_TOKEN'])
  // The token may also be in the query.
  const reset = await t.anon.post(`/api/auth/reset-password?token=${token}`, { newPassword: NEW })
  assert.equal(reset.status, 200)
  await t.mails()
})

test('of fifty concurrent requests with one reset token one sets the password', async () => {
  const ada = await t.signUp('Ada')
  const token = await resetToken(ada.email)
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      t.anon.post('/api/auth/reset-password', { newPassword: `${NEW} ${index}`, token }),
    ),
  )
  const won = answers.findIndex(({ status }) => status === 200)
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.ok(answers.every(({ status }) => status === 200 || status === 400))
  assert.equal((await signIn(ada.email, `${NEW} ${won}`)).status, 200)
  await t.mails()
})

test('a password that the policy refuses leaves the token valid', async () => {
  const ada = await t.signUp('Ada')
  const token = await resetToken(ada.email)
  const short = await t.anon.post('/api/auth/reset-password', { newPassword: 'short', token })
  assert.deepEqual([short.status, short.body.code], [400, 'PASSWORD_TOO_SHORT'])
  assert.equal((await t.anon.post('/api/auth/reset-password', { newPassword: NEW, token })).status, 200)
  await t.mails()
})

test('a reset link ends after an hour, and when the password is changed another way', async () => {
  const ada = await t.signUp('Ada')
  const late = await resetToken(ada.email)
  t.advance(3_600_001)
  assert.equal((await t.anon.post('/api/auth/reset-password', { newPassword: NEW, token: late })).status, 400)

  const replaced = await resetToken(ada.email)
  await ada.post('/api/auth/change-password', { currentPassword: PASSWORD, newPassword: NEW })
  assert.equal(
    (await t.anon.post('/api/auth/reset-password', { newPassword: PASSWORD, token: replaced })).status,
    400,
  )
  await t.mails()
})

test('a token of one purpose is worthless for another', async () => {
  const ada = await t.signUp('Ada')
  const reset = await resetToken(ada.email)
  assert.equal((await ada.get(`/api/auth/verify-email?token=${reset}`)).body.code, 'INVALID_TOKEN')
  assert.equal((await ada.get(`/api/auth/delete-user/callback?token=${reset}`)).body.code, 'INVALID_TOKEN')
  assert.equal((await t.anon.get(`/api/auth/reset-password/${reset}`)).status, 200)
})

test('a changed password ends other sessions only on request', async () => {
  const ada = await t.signUp('Ada')
  const { body: phone } = await signIn(ada.email, PASSWORD)
  const onPhone = { headers: { authorization: `Bearer ${phone.token}` } }
  const wrong = await ada.post('/api/auth/change-password', {
    currentPassword: 'wrong password',
    newPassword: NEW,
  })
  assert.deepEqual([wrong.status, wrong.body.code], [400, 'INVALID_PASSWORD'])

  const kept = await ada.post('/api/auth/change-password', { currentPassword: PASSWORD, newPassword: NEW })
  assert.deepEqual([kept.status, kept.body.token, kept.body.user.email], [200, null, ada.email])
  assert.equal((await t.anon.get('/api/auth/get-session', onPhone)).status, 200)

  const ended = await ada.post('/api/auth/change-password', {
    currentPassword: NEW,
    newPassword: PASSWORD,
    revokeOtherSessions: true,
  })
  assert.equal((await t.anon.get('/api/auth/get-session', onPhone)).status, 401)
  assert.equal((await ada.get('/api/auth/get-session')).status, 401, 'the old token is replaced')
  const headers = { authorization: `Bearer ${ended.body.token}` }
  const now = await t.anon.get('/api/auth/get-session', { headers })
  assert.equal(now.status, 200)
  assert.equal(ended.headers.get('set-auth-token'), ended.body.token)
  await t.mails()
})

test('a user without a password sets one from a fresh session only, and gets a notice', async () => {
  const ada = await proveAddress(t, await t.signUp('Ada'))
  const taken = await ada.post('/api/auth/set-password', { newPassword: NEW })
  assert.deepEqual([taken.status, taken.body.code], [400, 'PASSWORD_ALREADY_SET'])
  await t.service.kernel.db.deleteFrom('account').where('userId', '=', ada.id).execute()
  const change = await ada.post('/api/auth/change-password', { currentPassword: PASSWORD, newPassword: NEW })
  assert.deepEqual([change.status, change.body.code], [400, 'CREDENTIAL_ACCOUNT_NOT_FOUND'])
  t.advance(DAY + 1_000)
  const stale = await ada.post('/api/auth/set-password', { newPassword: NEW })
  assert.deepEqual([stale.status, stale.body.code], [403, 'SESSION_NOT_FRESH'])
  t.advance(-DAY - 1_000)
  await t.mails()
  assert.deepEqual((await ada.post('/api/auth/set-password', { newPassword: NEW })).body, { status: true })
  const [notice, ...more] = await t.mails()
  assert.match(notice ?? '', /password of your account has just been changed/)
  assert.deepEqual(more, [])
  assert.equal((await signIn(ada.email, NEW)).status, 200)
})

test('the notice of a change says which sessions it has ended', async () => {
  const ada = await proveAddress(t, await t.signUp('Ada'))
  const change = (by: string, to: string, revokeOtherSessions: boolean) =>
    ada.post('/api/auth/change-password', { currentPassword: by, newPassword: to, revokeOtherSessions })
  const says = async () => (await t.mails()).at(-1)?.replace(/=\r?\n/g, '') ?? ''
  await says()
  assert.equal((await change(PASSWORD, NEW, false)).status, 200)
  assert.match(await says(), /Sessions on other devices stay signed in\./)
  assert.equal((await change(NEW, PASSWORD, true)).status, 200)
  assert.match(await says(), /Every other session of the account was ended\./)
  const token = await resetToken(ada.email)
  await t.anon.post('/api/auth/reset-password', { newPassword: NEW, token })
  assert.match(await says(), /Every session of the account was ended\./)
})
