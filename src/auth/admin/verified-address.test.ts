import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { type Actor, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { createInvitation, createOrganization, createPerson } from '#test/organizations.ts'
import { enrolTotp } from '#test/second-factor.ts'
import { setRoleByOperator } from './operator.ts'

const t = await testService()
const { kernel } = t.service
const { db } = kernel
const admin = await createPerson(t, { role: 'admin' })

const update = (userId: string, data: object) =>
  admin.post('/api/auth/admin/update-user', { userId, data }).then(({ status }) => status)
const signIn = (email: string) => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
const isAlive = async (who: Actor) => (await who.get('/api/auth/get-session')).status === 200
const providersOf = async (userId: string) => {
  const rows = await db.selectFrom('account').select('providerId').where('userId', '=', userId).execute()
  return rows.map(({ providerId }) => providerId).sort()
}
const setVerified = (id: string, emailVerified: boolean) =>
  db
    .updateTable('user')
    .set({ emailVerified, emailProvenAt: emailVerified ? kernel.now() : null })
    .where('id', '=', id)
    .execute()
const isProven = async (id: string) => {
  const { emailProvenAt } = await db
    .selectFrom('user')
    .select('emailProvenAt')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return emailProvenAt !== null
}

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

test('an admin who calls an address verified removes nothing, and the account goes on', async () => {
  const ada = await newcomer()
  await db.updateTable('user').set({ twoFactorEnabled: true }).where('id', '=', ada.id).execute()
  await t.mails()
  assert.equal(await update(ada.id, { emailVerified: true }), 200)
  assert.equal((await ada.get('/api/auth/get-session')).body.user.emailVerified, true)
  assert.deepEqual(await providersOf(ada.id), ['credential', 'github'])
  const { body } = await signIn(ada.email)
  assert.equal(body.twoFactorRedirect, true, 'the second factor is asked for')
  assert.equal(await isProven(ada.id), false)
  assert.deepEqual(await t.mails(), [])
})

test('a new address gets no mail and is not proven; the proven former one gets a notice, and a stranger’s none', async () => {
  const [ada, eve] = [await newcomer(), await newcomer()]
  await setVerified(ada.id, true)
  await t.mails()
  const email = `moved-${ada.email}`
  assert.equal(await update(ada.id, { email, emailVerified: true }), 200)
  assert.equal(await update(eve.id, { email: `moved-${eve.email}` }), 200)
  const [notice = '', ...more] = await t.mails()
  assert.deepEqual(more, [])
  assert.match(notice, new RegExp(`To: ${ada.email}`))
  assert.match(notice, /Your email address was changed/)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  assert.deepEqual(await providersOf(ada.id), ['credential', 'github'])
  assert.equal((await signIn(email)).status, 200)
  assert.equal(await isProven(ada.id), false)
  const { body } = await eve.get('/api/auth/get-session')
  assert.equal(body.user.emailVerified, false)
})

test('a proven address stays proven when an admin takes the verification back', async () => {
  const ada = await newcomer()
  await setVerified(ada.id, true)
  assert.equal(await update(ada.id, { emailVerified: false }), 200)
  assert.equal(await isProven(ada.id), true)
})

test('a new address and a reset by its mail do not remove the second factor, nor does a mailed code stand for it', async () => {
  for (const path of ['reset-password', 'verify-email'] as const) {
    const ada = await enrolTotp(t, await t.signUp('Ada'))
    await setVerified(ada.id, true)
    const email = `taken-${ada.email}`
    assert.equal(await update(ada.id, { email, emailVerified: false }), 200)
    await t.mails()
    const ask = path === 'verify-email' ? 'send-verification-email' : 'forget-password'
    await t.anon.post(`/api/auth/${ask}`, { email })
    const link = linkIn((await t.mails()).find((mail) => mail.includes(`To: ${email}`)) ?? '')
    const token = /reset-password\/([\w-]+)/.exec(link)?.[1] ?? new URL(link, t.url).searchParams.get('token')
    const done = await t.anon.post(`/api/auth/${path}`, { token, newPassword: 'chosen by the mailbox' })
    assert.equal(done.status, 200, done.text)
    assert.equal(await isProven(ada.id), true)
    const { body } = await t.anon.post('/api/auth/sign-in/email', {
      email,
      password: 'chosen by the mailbox',
    })
    assert.deepEqual([body.twoFactorRedirect, body.twoFactorMethods], [true, ['totp']], path)
    assert.equal(await isAlive(ada), false)
  }
})

test('an admin changes the own address, and opens no invitation of a stranger with it', async () => {
  const [root, owner] = [await t.signUp('Root'), await createPerson(t)]
  await setVerified(root.id, true)
  await setRoleByOperator(kernel, root.id, 'admin')
  const organization = await createOrganization(t, [[owner, 'owner']])
  const to = `invited-${root.email}`
  const invitationId = await createInvitation(t, organization, { from: owner, to, role: 'admin' })
  const data = { email: to, emailVerified: true }
  assert.equal((await root.post('/api/auth/admin/update-user', { userId: root.id, data })).status, 200)
  assert.equal(await isAlive(root), true)
  const accepted = await root.post('/api/auth/organization/accept-invitation', { invitationId })
  assert.equal(accepted.status, 403, accepted.text)
  const listed = await root.get('/api/auth/organization/list-user-invitations')
  assert.equal(listed.status, 403, listed.text)
})
