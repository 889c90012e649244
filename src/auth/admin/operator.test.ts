import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testKernel, testService } from '#test/harness.ts'
import { banByOperator, setRoleByOperator, unbanByOperator } from './operator.ts'

const t = await testService()
/** The command line is another process on the same database. */
const elsewhere = await testKernel({ controlUrl: t.controlUrl })
const NOBODY = '00000000-0000-7000-8000-000000000000'

const signIn = (email: string) => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })

test('a ban ends every session and every link at once, in every process', async () => {
  const ada = await t.signUp('Ada')
  const second = await signIn(ada.email)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  const [mail = ''] = await t.mails()
  const [, token = ''] = /reset-password\/([A-Za-z0-9_-]{43})/.exec(mail.replaceAll('=\r\n', '')) ?? []

  assert.equal(await banByOperator(elsewhere, ada.id, { reason: 'spam', expires: null }), true)
  assert.equal((await ada.get('/api/auth/get-session')).status, 401)
  const headers = { authorization: `Bearer ${second.body.token}` }
  assert.equal((await t.anon.get('/api/auth/get-session', { headers })).status, 401)
  assert.equal((await signIn(ada.email)).body.code, 'BANNED_USER')
  const reset = await t.anon.post('/api/auth/reset-password', { token, newPassword: 'another horse battery' })
  assert.deepEqual([reset.status, reset.body.code], [400, 'INVALID_TOKEN'])

  assert.equal(await unbanByOperator(elsewhere, ada.id), true)
  assert.equal((await signIn(ada.email)).status, 200)
})

test('a ban ends by itself when it expires', async () => {
  const bob = await t.signUp('Bob')
  const expires = new Date(Date.now() + 3_600_000)
  await banByOperator(elsewhere, bob.id, { reason: null, expires })
  assert.equal((await signIn(bob.email)).body.code, 'BANNED_USER')
  t.advance(3_601_000)
  assert.equal((await signIn(bob.email)).status, 200)
})

test('a change of role is effective in every process at once', async () => {
  const eve = await t.signUp('Eve')
  assert.equal((await eve.get('/api/auth/get-session')).body.user.role, 'user')
  assert.equal(await setRoleByOperator(elsewhere, eve.id, 'admin'), true)
  assert.equal((await eve.get('/api/auth/get-session')).body.user.role, 'admin')
})

test('a user who does not exist cannot be banned or given a role', async () => {
  assert.equal(await banByOperator(elsewhere, NOBODY, { reason: null, expires: null }), false)
  assert.equal(await unbanByOperator(elsewhere, NOBODY), false)
  assert.equal(await setRoleByOperator(elsewhere, NOBODY, 'admin'), false)
})
