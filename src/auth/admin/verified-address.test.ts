import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { PASSWORD, testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'

const t = await testService()
const { kernel } = t.service
const { db } = kernel
const admin = await createPerson(t, { role: 'admin' })

const update = (userId: string, data: object) =>
  admin.post('/api/auth/admin/update-user', { userId, data }).then(({ status }) => status)
const signIn = (email: string) => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
const isAlive = async (who: typeof admin) => (await who.get('/api/auth/get-session')).status === 200
const providersOf = async (userId: string) => {
  const rows = await db.selectFrom('account').select('providerId').where('userId', '=', userId).execute()
  return rows.map(({ providerId }) => providerId).sort()
}
const setVerified = (id: string, emailVerified: boolean) =>
  db.updateTable('user').set({ emailVerified }).where('id', '=', id).execute()

/** A user with a session, a password and a linked account. */
async function newcomer() {
  const user = await t.signUp('Ada')
  const times = { createdAt: kernel.now(), updatedAt: kernel.now() }
  const linked = { ...times, userId: user.id, providerId: 'github', accountId: user.id }
  await db
    .insertInto('account')
    .values({ ...linked, id: randomUUID() })
    .execute()
  return user
}

test('an address that an admin calls verified is proven without what others may have added', async () => {
  const ada = await newcomer()
  assert.equal(await update(ada.id, { name: 'Named' }), 200)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  assert.equal(await update(ada.id, { emailVerified: true }), 200)
  assert.equal((await ada.get('/api/auth/get-session')).status, 401)
  assert.deepEqual(await providersOf(ada.id), ['credential'])
  const refusal = await signIn(ada.email)
  assert.deepEqual([refusal.status, refusal.body.code], [403, 'PASSWORD_CHANGE_REQUIRED'])
  const password = { userId: ada.id, newPassword: PASSWORD }
  assert.equal((await admin.post('/api/auth/admin/set-user-password', password)).status, 200)
  assert.equal((await signIn(ada.email)).status, 200)
})

test('a proven account keeps everything when an admin gives it another verified address, and so does the own one', async () => {
  const ada = await newcomer()
  await setVerified(ada.id, true)
  const email = `moved-${ada.email}`
  assert.equal(await update(ada.id, { email, emailVerified: true }), 200)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  assert.deepEqual(await providersOf(ada.id), ['credential', 'github'])
  assert.equal((await signIn(email)).status, 200)
  await setVerified(admin.id, false)
  assert.equal(await update(admin.id, { emailVerified: true }), 200)
  assert.equal(await isAlive(admin), true)
})
