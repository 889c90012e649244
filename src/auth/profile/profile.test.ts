import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readOutbox } from '#kernel/mail/transports.ts'
import { endpointOf, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { proveAddress } from '#test/proven-address.ts'

const t = await testService()
const DAY = 86_400_000

test('a profile takes name, picture and username, and nothing else', async () => {
  const ada = await t.signUp('Ada')
  const change = await ada.post('/api/auth/update-user', {
    name: 'Ada Lovelace',
    image: 'https://example.com/ada.png',
    username: 'Ada.L',
    role: 'admin',
    emailVerified: true,
    banned: true,
    id: '00000000-0000-7000-8000-000000000000',
  })
  assert.deepEqual(change.body, { status: true })
  const { user } = (await ada.get('/api/auth/get-session')).body
  assert.deepEqual(
    [
      user.name,
      user.image,
      user.username,
      user.displayUsername,
      user.role,
      user.emailVerified,
      user.banned,
      user.id,
    ],
    ['Ada Lovelace', 'https://example.com/ada.png', 'ada.l', 'Ada.L', 'user', false, false, ada.id],
  )
  await ada.post('/api/auth/update-user', { image: null })
  assert.equal((await ada.get('/api/auth/get-session')).body.user.image, null)
})

test('an empty name is taken wherever a name is, and mails greet without one', async () => {
  const email = 'nameless@example.com'
  const signUp = await t.anon.post('/api/auth/sign-up/email', { name: '', email, password: PASSWORD })
  assert.deepEqual([signUp.status, signUp.body.user.name], [200, ''])
  const { id } = signUp.body.user
  const nameless = await proveAddress(t, { id })
  const root = await createPerson(t, { role: 'admin' })
  const nameOf = async () => (await root.get(`/api/auth/admin/get-user?id=${id}`)).body.name
  const own = { headers: { authorization: `Bearer ${signUp.body.token}` } }
  const rename = (name: string) => t.anon.post('/api/auth/update-user', { name }, own)
  const renameByAdmin = (name: string) =>
    root.post('/api/auth/admin/update-user', { userId: nameless.id, data: { name } })
  for (const change of [rename, renameByAdmin])
    for (const [name, stored] of [
      ['Ada', 'Ada'],
      [' ', ''],
      ['Ada', 'Ada'],
      ['', ''],
    ] as const) {
      const answer = await change(name)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(await nameOf(), stored)
    }
  const created = { name: '', email: 'added@example.com', password: PASSWORD }
  assert.equal((await root.post('/api/auth/admin/create-user', created)).status, 200)
  await t.mails()
  await t.anon.post('/api/auth/forget-password', { email })
  const [mail = ''] = await t.mails()
  assert.match(mail, /^Hello,/m)
  // Another test is about the last admin.
  await t.service.kernel.db.updateTable('user').set({ role: 'user' }).where('id', '=', root.id).execute()
})

test('an email, nothing, and a taken username are refused', async () => {
  const ada = await t.signUp('Ada')
  const bob = await t.signUp('Bob')
  await bob.post('/api/auth/update-user', { username: 'bobby' })
  const code = async (body: object) => (await ada.post('/api/auth/update-user', body)).body.code
  assert.equal(await code({ email: 'new@example.com' }), 'EMAIL_CAN_NOT_BE_UPDATED')
  assert.equal(await code({}), 'NO_FIELDS_TO_UPDATE')
  assert.equal(await code({ username: 'BOBBY' }), 'USERNAME_IS_ALREADY_TAKEN')
  assert.equal(await code({ username: 'a b' }), 'INVALID_USERNAME')
})

test('a name of several lines, a picture of another scheme and a display form of another name are refused', async () => {
  const ada = await t.signUp('Ada')
  await ada.post('/api/auth/update-user', { username: 'ada.names' })
  const before = (await ada.get('/api/auth/get-session')).body.user
  const bodies: readonly (readonly [body: object, code: string])[] = [
    [{ name: 'Ada\nEve' }, 'VALIDATION_ERROR'],
    [{ name: 'x'.repeat(101) }, 'VALIDATION_ERROR'],
    [{ name: 'Ada\u2066' }, 'VALIDATION_ERROR'],
    [{ image: 'javascript:alert(1)' }, 'VALIDATION_ERROR'],
    [{ image: '/ada.png' }, 'VALIDATION_ERROR'],
    [{ displayUsername: 'Admin' }, 'INVALID_USERNAME'],
    [{ username: 'mallory', displayUsername: 'Admin' }, 'INVALID_USERNAME'],
    [{ username: 'zoë' }, 'INVALID_USERNAME'],
  ]
  for (const [body, code] of bodies) {
    const answer = await ada.post('/api/auth/update-user', body)
    assert.deepEqual([answer.status, answer.body.code], [400, code], JSON.stringify(body))
  }
  assert.deepEqual((await ada.get('/api/auth/get-session')).body.user, before)
  assert.equal((await ada.post('/api/auth/update-user', { displayUsername: 'Ada.Names' })).status, 200)
  assert.equal((await ada.get('/api/auth/get-session')).body.user.displayUsername, 'Ada.Names')
})

test('an account is deleted with the password or from a fresh session', async () => {
  const ada = await t.signUp('Ada')
  const wrong = await ada.post('/api/auth/delete-user', { password: 'wrong password' })
  assert.deepEqual([wrong.status, wrong.body.code], [400, 'INVALID_PASSWORD'])
  const gone = await ada.post('/api/auth/delete-user', { password: PASSWORD })
  assert.deepEqual(gone.body, { success: true, message: 'User deleted' })
  assert.equal((await ada.get('/api/auth/get-session')).status, 401)
  const signIn = await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  assert.equal(signIn.status, 401)

  const bob = await t.signUp('Bob')
  assert.equal((await bob.post('/api/auth/delete-user')).body.message, 'User deleted')
})

test('from an old session a link is mailed, which works once and in a session of the same user only', async () => {
  const ada = await t.signUp('Ada')
  const bob = await t.signUp('Bob')
  t.advance(DAY + 1_000)
  assert.equal((await ada.post('/api/auth/delete-user')).body.message, 'Verification email sent')
  const [mail = ''] = await t.mails()
  const link = endpointOf(linkIn(mail))
  assert.equal((await t.anon.get(link)).status, 401)
  assert.equal((await bob.get(link)).body.code, 'INVALID_TOKEN')
  const answers = await Promise.all(Array.from({ length: 50 }, () => ada.get(link)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.ok(answers.every(({ status }) => [200, 400, 401].includes(status)))
  assert.equal((await ada.get('/api/auth/get-session')).status, 401)
  assert.equal((await bob.get('/api/auth/get-session')).status, 200)
})

test('the last admin stays', async () => {
  const ada = await t.signUp('Ada')
  const bob = await t.signUp('Bob')
  const promote = (id: string) =>
    t.service.kernel.db.updateTable('user').set({ role: 'admin' }).where('id', '=', id).execute()
  await promote(ada.id)
  const alone = await ada.post('/api/auth/delete-user', { password: PASSWORD })
  assert.deepEqual([alone.status, alone.body.code], [400, 'LAST_ADMIN'])
  await promote(bob.id)
  const both = await Promise.all(
    [ada, bob].map((user) => user.post('/api/auth/delete-user', { password: PASSWORD })),
  )
  assert.deepEqual(
    both.map(({ status }) => status).sort(),
    [200, 400],
    'of two concurrent deletions one fails',
  )
})

test('the password is listed as an account, and the last account cannot be removed', async () => {
  const ada = await t.signUp('Ada')
  const { body } = await ada.get('/api/auth/list-accounts')
  assert.equal(body.length, 1)
  assert.deepEqual(
    [body[0].provider, body[0].providerId, body[0].accountId, body[0].scopes],
    ['credential', 'credential', ada.id, []],
  )
  assert.ok(!('password' in body[0]))
  const last = await ada.post('/api/auth/unlink-account', { providerId: 'credential' })
  assert.deepEqual([last.status, last.body.code], [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT'])
  const none = await ada.post('/api/auth/unlink-account', { providerId: 'github' })
  assert.deepEqual([none.status, none.body.code], [404, 'ACCOUNT_NOT_FOUND'])
})

test('deleting an account deletes the queued mails to it and those in the outbox, and no others', async () => {
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  const ask = async () => {
    for (const { email } of [ada, bob]) await t.anon.post('/api/auth/forget-password', { email })
  }
  await ask()
  assert.equal((await t.mails()).length, 2)
  await ask()
  assert.equal((await ada.post('/api/auth/delete-user', { password: PASSWORD })).status, 200)
  const fresh = await t.mails()
  assert.equal(fresh.filter((mail) => mail.includes(ada.email)).length, 0)
  assert.equal(fresh.filter((mail) => mail.includes(`To: ${bob.email}`)).length, 1)
  const kept = () => readOutbox(t.config)
  const toAda = async () =>
    (await kept()).filter(({ message }) => message.includes(`To: ${ada.email}`)).length
  for (let tries = 0; tries < 1_000 && (await toAda()) > 0; tries++) await sleep(10)
  assert.equal(await toAda(), 0)
  assert.equal((await kept()).filter(({ message }) => message.includes(`To: ${bob.email}`)).length, 2)
})
