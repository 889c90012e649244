import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testService } from '#test/harness.ts'

test('with enable_signup off no user is added, and existing ones sign in', async () => {
  const before = await testService()
  const ada = await before.signUp('Ada')
  const t = await testService({
    controlUrl: before.controlUrl,
    config: { auth: { email_password: { enable_signup: false } } },
  })
  const asked = { name: 'Eve', email: 'eve@example.com', password: PASSWORD }
  const answer = await t.anon.post('/api/auth/sign-up/email', asked)
  assert.deepEqual([answer.status, answer.body.code], [403, 'SIGN_UP_DISABLED'])
  const taken = await t.anon.post('/api/auth/sign-up/email', { ...asked, email: ada.email })
  assert.deepEqual(taken.body, answer.body, 'it does not show which addresses have an account')
  assert.equal(
    (await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })).status,
    200,
  )
})

test('password_min_length holds', async () => {
  const t = await testService({ config: { auth: { email_password: { password_min_length: 12 } } } })
  const signUp = (password: string) =>
    t.anon.post('/api/auth/sign-up/email', { name: 'Ada', email: 'ada@example.com', password })
  assert.match((await signUp('x'.repeat(11))).body.message, /12/)
  assert.equal((await signUp('x'.repeat(12))).status, 200)
})

test('with hide_registered_emails a taken email is answered like a free one, and its account stays as it was', async () => {
  const t = await testService({
    config: { auth: { hide_registered_emails: true, email_password: { require_email_verification: true } } },
  })
  const signUp = (body: Record<string, unknown>) =>
    t.anon.post('/api/auth/sign-up/email', {
      name: 'Ada',
      email: 'ada@example.com',
      password: PASSWORD,
      ...body,
    })
  const free = await signUp({ username: 'ada' })
  assert.equal((await t.mails()).length, 1)
  const taken = await signUp({ name: 'Eve', username: 'eve', password: 'another password' })

  assert.deepEqual([taken.status, taken.body.token], [200, null])
  assert.deepEqual(Object.keys(taken.body.user), Object.keys(free.body.user))
  assert.notEqual(taken.body.user.id, free.body.user.id)
  assert.deepEqual(
    [taken.body.user.name, taken.body.user.email, taken.body.user.username],
    ['Eve', 'ada@example.com', 'eve'],
  )
  // The names of headers and of cookies do not differ either.
  const shape = ({ headers }: typeof free) => [
    [...headers.keys()],
    headers.getSetCookie().map((cookie) => cookie.replace(/=[^;]*/, '')),
  ]
  assert.deepEqual(shape(taken), shape(free))
  assert.equal((await t.mails()).length, 1, 'the owner of the address gets a mail')

  const rows = await t.service.kernel.db.selectFrom('user').select(['name', 'username']).execute()
  assert.deepEqual(rows, [{ name: 'Ada', username: 'ada' }])
  const eve = await t.anon.post('/api/auth/sign-in/email', {
    email: 'ada@example.com',
    password: 'another password',
  })
  assert.equal(eve.body.code, 'EMAIL_NOT_VERIFIED')
})
