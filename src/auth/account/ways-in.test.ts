import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertLinkedAccount } from '#identity/linked-accounts.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { actor, type Options, testService, type User } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { proveAddress } from '#test/proven-address.ts'

const AUTH = '/api/auth'
const github = { client_id: 'id', client_secret: 'secret' }
const withGithub = { auth: { social: { providers: { github } } } }
const t = await testService({ config: withGithub })
const { kernel } = t.service
const { register, signIn } = ceremoniesOf(t)

/** Another start of the installation, with other settings. */
const restarted = async (config: Options['config']) =>
  (await testService({ controlUrl: t.controlUrl, ...(config && { config }) })).url

const at = {
  asBefore: t.url,
  withoutProviders: await restarted({}),
  otherDomain: await restarted({
    auth: { passkey: { rp_id: 'example.com', origins: ['https://example.com'] } },
  }),
  address: await restarted({ server: { public_url: 'http://192.0.2.1' } }),
  otherOrigin: await restarted({ auth: { passkey: { origins: ['https://app.example.com'] } } }),
  insecureOrigin: await restarted({
    auth: { passkey: { rp_id: 'example.com', origins: ['http://example.com'] } },
  }),
}
type Settings = keyof typeof at

/** Ways in besides a password. */
const WAYS = {
  passkey: (user: User) => register(user, createAuthenticator()),
  'passkey of an old version': async (user: User) => {
    await register(user, createAuthenticator())
    await kernel.db.updateTable('passkey').set({ rpId: null }).where('userId', '=', user.id).execute()
  },
  'linked account': (user: User) =>
    insertLinkedAccount(kernel, user.id, { providerId: 'github', accountId: user.id }, {}),
}
type WayIn = keyof typeof WAYS

async function newUser(way: WayIn): Promise<User> {
  const user = await proveAddress(t, await t.signUp('Ada'))
  await WAYS[way](user)
  await t.mails()
  return user
}

const stateOf = async ({ id }: User) => ({
  accounts: await kernel.db.selectFrom('account').selectAll().where('userId', '=', id).execute(),
  passkeys: await kernel.db.selectFrom('passkey').selectAll().where('userId', '=', id).execute(),
  sessions: await kernel.db.selectFrom('session').select(['id', 'shown']).where('userId', '=', id).execute(),
  acts: await kernel.db.selectFrom('auditEvent').select('action').where('targetId', '=', id).execute(),
})

/** The password of a user who has this besides. `true`: it can be unlinked. */
const CASES: readonly (readonly [way: WayIn, settings: Settings, expected: boolean])[] = [
  ['passkey', 'asBefore', true],
  ['passkey', 'otherDomain', false],
  ['passkey', 'address', false],
  ['passkey', 'otherOrigin', false],
  ['passkey', 'insecureOrigin', false],
  ['passkey of an old version', 'asBefore', true],
  ['passkey of an old version', 'otherDomain', true],
  ['passkey of an old version', 'address', false],
  ['passkey of an old version', 'otherOrigin', false],
  ['passkey of an old version', 'insecureOrigin', false],
  ['linked account', 'asBefore', true],
  ['linked account', 'withoutProviders', false],
]

for (const [way, settings, expected] of CASES)
  test(`with a ${way}, the password is ${expected ? 'not ' : ''}the last usable way in (${settings})`, async () => {
    const user = await newUser(way)
    const before = await stateOf(user)
    const asked = actor(at[settings], user.headers)
    const { status, body } = await asked.post(`${AUTH}/unlink-account`, { providerId: 'credential' })
    if (expected) {
      assert.equal(status, 200)
      assert.equal((await t.mails()).length, 1)
      return
    }
    assert.deepEqual([status, body.code], [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT'])
    assert.deepEqual(await stateOf(user), before)
    assert.deepEqual(await t.mails(), [])
  })

test('a password that has to be changed, or is none, is no way in', async () => {
  for (const changed of [{ mustChangePassword: true }, { password: null }]) {
    const user = await newUser('passkey')
    const [passkey] = (await stateOf(user)).passkeys
    await kernel.db.updateTable('account').set(changed).where('userId', '=', user.id).execute()
    const before = await stateOf(user)
    const { status, body } = await user.post(`${AUTH}/passkey/delete-passkey`, { id: passkey?.id })
    assert.deepEqual([status, body.code], [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT'])
    assert.deepEqual(await stateOf(user), before)
    assert.deepEqual(await t.mails(), [])
  }
})

test('a passkey of the domain of before is no way in beside one that is removed', async () => {
  const user = await newUser('passkey')
  await register(user, createAuthenticator())
  const [former, present] = (await stateOf(user)).passkeys
  await kernel.db.deleteFrom('account').where('userId', '=', user.id).execute()
  const { db } = kernel
  await db
    .updateTable('passkey')
    .set({ rpId: 'old.example' })
    .where('id', '=', former?.id ?? '')
    .execute()
  const remove = (id = '') => user.post(`${AUTH}/passkey/delete-passkey`, { id })
  assert.equal((await remove(present?.id)).body.code, 'FAILED_TO_UNLINK_LAST_ACCOUNT')
  assert.equal((await remove(former?.id)).status, 200)
})

test('a sign-in writes down the domain of a passkey of an old version', async () => {
  const user = await t.signUp('Ada')
  const authenticator = createAuthenticator()
  await register(user, authenticator)
  await kernel.db.updateTable('passkey').set({ rpId: null }).where('userId', '=', user.id).execute()
  assert.equal((await signIn(authenticator)).status, 200)
  const [passkey] = (await stateOf(user)).passkeys
  assert.equal(passkey?.rpId, 'localhost')
})
