import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { actor, linkIn, testService, type User } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { ceremoniesOf } from '#test/passkeys.ts'

const t = await testService({ config: { auth: { anonymous: { enabled: true } } } })
const passkeys = ceremoniesOf(t)
const AUTH = '/api/auth'
const admin = await createPerson(t, { role: 'admin' })

/** A user who became a known one by a passkey, and has an address of an admin since. */
async function withGivenAddress() {
  const [who, authenticator] = [await signInAnonymously(t), createAuthenticator()]
  assert.equal((await passkeys.register(who, authenticator)).status, 200)
  const email = `given-${who.id}@example.com`
  const given = await admin.post(`${AUTH}/admin/update-user`, { userId: who.id, data: { email } })
  assert.equal(given.status, 200, given.text)
  const { body } = await passkeys.signIn(authenticator)
  return { who, authenticator, email, own: actor(t.url, { authorization: `Bearer ${body.token}` }) }
}
async function proofOf(email: string): Promise<string> {
  await t.mails()
  await t.anon.post(`${AUTH}/send-verification-email`, { email })
  const [mail = ''] = await t.mails()
  return new URL(linkIn(mail), t.url).searchParams.get('token') ?? ''
}
const entersWith = async (authenticator: ReturnType<typeof createAuthenticator>, { id }: User) =>
  (await passkeys.signIn(authenticator)).body.user?.id === id

test('the passkey that made the user a known one stays when its user proves an address that an admin has given', async () => {
  const { who, authenticator, email, own } = await withGivenAddress()
  const verified = await own.post(`${AUTH}/verify-email`, { token: await proofOf(email) })
  assert.equal(verified.status, 200, verified.text)
  assert.equal(await entersWith(authenticator, who), true)
})

test('it goes, as all that another may have added, when the owner of the address proves it without a session', async () => {
  const { who, authenticator, email } = await withGivenAddress()
  const verified = await t.anon.post(`${AUTH}/verify-email`, {
    ...{ token: await proofOf(email), newPassword: 'another horse staple' },
  })
  assert.equal(verified.status, 200, verified.text)
  assert.equal(await entersWith(authenticator, who), false)
})
