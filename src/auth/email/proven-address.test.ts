import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { confirm, linkIn, PASSWORD, testService, type User } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'

const t = await testService()
const { db } = t.service.kernel
const admin = await createPerson(t, { role: 'admin' })

const stateOf = async ({ id }: { readonly id: string }) => {
  const columns = ['emailVerified', 'emailProvenAt'] as const
  const row = await db.selectFrom('user').select(columns).where('id', '=', id).executeTakeFirstOrThrow()
  return { verified: row.emailVerified, proven: row.emailProvenAt !== null }
}
const PROVEN = { verified: true, proven: true }
const ONLY_VERIFIED = { verified: true, proven: false }

/** An admin's word, as the column has it: what the admin's verb does besides is not of interest here. */
const callVerified = async ({ id }: User) => {
  await db.updateTable('user').set({ emailVerified: true }).where('id', '=', id).execute()
  await t.service.kernel.coherence.settle()
}

const verificationLink = async ({ email }: User): Promise<string> => {
  await t.anon.post('/api/auth/send-verification-email', { email })
  return linkIn((await t.mails()).at(-1) ?? '')
}

async function reset({ email }: User): Promise<void> {
  await t.anon.post('/api/auth/forget-password', { email })
  const token = linkIn((await t.mails()).at(-1) ?? '')
    .split('/')
    .at(-1)
  const answer = await t.anon.post('/api/auth/reset-password', { token, newPassword: PASSWORD })
  assert.equal(answer.status, 200)
  await t.mails()
}

test('the links of verify-email, of a reset and of the last step of a change prove an address', async () => {
  const [ada, bob, eve] = [await t.signUp('Ada'), await t.signUp('Bob'), await t.signUp('Eve')]
  assert.deepEqual(await stateOf(ada), { verified: false, proven: false })
  assert.equal((await confirm(ada, await verificationLink(ada))).status, 200)
  await reset(bob)
  await eve.post('/api/auth/change-email', { newEmail: `new-${eve.email}` })
  const mail = (await t.mails()).find((text) => text.includes(`To: new-${eve.email}`)) ?? ''
  assert.equal((await confirm(eve, linkIn(mail))).status, 200)
  for (const user of [ada, bob, eve]) assert.deepEqual(await stateOf(user), PROVEN)
})

test('the word of an admin proves nothing, for a user who is there and for a new one, and another address is unproven', async () => {
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  const update = (userId: string, data: object) => admin.post('/api/auth/admin/update-user', { userId, data })
  assert.equal((await update(ada.id, { emailVerified: true })).status, 200)
  assert.deepEqual(await stateOf(ada), ONLY_VERIFIED)

  const made = { email: `made-${ada.email}`, name: 'Made', password: PASSWORD, data: { emailVerified: true } }
  const created = await admin.post('/api/auth/admin/create-user', made)
  assert.deepEqual(await stateOf(created.body.user), ONLY_VERIFIED)

  await reset(bob)
  assert.equal((await update(bob.id, { email: `other-${bob.email}`, emailVerified: true })).status, 200)
  assert.deepEqual(await stateOf(bob), ONLY_VERIFIED)
})

test('a reset of an account that an admin calls verified is the first proof: what others added is removed', async () => {
  const ada = await t.signUp('Ada')
  const times = { createdAt: new Date(), updatedAt: new Date() }
  const linked = { id: randomUUID(), userId: ada.id, providerId: 'github', accountId: randomUUID(), ...times }
  await db.insertInto('account').values(linked).execute()
  await callVerified(ada)
  const accounts = () =>
    db.selectFrom('account').select('providerId').where('userId', '=', ada.id).orderBy('providerId').execute()
  await reset(ada)
  assert.deepEqual(await accounts(), [{ providerId: 'credential' }])
  assert.deepEqual(await stateOf(ada), PROVEN)
})

test('an account that an admin calls verified still gets a link, and its click asks for a sign of the owner', async () => {
  const ada = await t.signUp('Ada')
  await callVerified(ada)
  const link = await verificationLink(ada)
  const token = new URL(link, t.url).searchParams.get('token')
  const asked = await t.anon.post('/api/auth/verify-email', { token })
  assert.deepEqual([asked.status, asked.body.code], [400, 'PASSWORD_REQUIRED'])
  assert.equal((await confirm(ada, link)).status, 200)
  assert.deepEqual(await stateOf(ada), PROVEN)
  await t.anon.post('/api/auth/send-verification-email', { email: ada.email })
  assert.deepEqual(await t.mails(), [], 'nothing is left to prove')
})

test('a proof lasts when an admin takes the verification back: the next link verifies and removes nothing', async () => {
  const ada = await t.signUp('Ada')
  assert.equal((await confirm(ada, await verificationLink(ada))).status, 200)
  await db.updateTable('user').set({ emailVerified: false }).where('id', '=', ada.id).execute()
  const link = await verificationLink(ada)
  assert.equal((await confirm(t.anon, link)).status, 200)
  assert.deepEqual(await stateOf(ada), PROVEN)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
})

test('the text of a mail to an address that only an admin calls verified is without the name of the account', async () => {
  const ada = await t.signUp('Cheap')
  await callVerified(ada)
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  const [mail = ''] = await t.mails()
  assert.match(mail, /Hello,/)
})
