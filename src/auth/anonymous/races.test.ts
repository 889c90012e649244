import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { type Actor, type Answer, linkIn, PASSWORD, type User } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { ceremoniesOf } from '#test/passkeys.ts'

const { t, db, kernel, idToken } = await startSocialService({
  anonymous: { enabled: true },
  password: { queue: 256 },
})
const passkeys = ceremoniesOf(t)
const AUTH = '/api/auth'
const DAY = 86_400_000

const upgradesOf = async ({ id }: User) =>
  (await db.selectFrom('auditEvent').select(['action']).where('targetId', '=', id).execute()).filter(
    ({ action }) => action === 'user.upgraded',
  ).length
const userOf = ({ id }: User) => db.selectFrom('user').selectAll().where('id', '=', id).executeTakeFirst()
const sessionsOf = async ({ id }: User) =>
  (await db.selectFrom('session').select('id').where('userId', '=', id).execute()).length

/** The token of the link of a sign-up in the session. */
async function linkFor(who: Actor, email: string): Promise<string> {
  const sent = await who.post(`${AUTH}/sign-up/email`, { name: 'Ada', email, password: PASSWORD })
  assert.equal(sent.status, 200, sent.text)
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`)) ?? ''
  return new URL(linkIn(mail), t.url).searchParams.get('token') ?? ''
}
const follow = (who: Actor, token: string) => who.post(`${AUTH}/verify-email`, { token, password: PASSWORD })
async function byProvider(who: User): Promise<() => Promise<Answer>> {
  const token = await idToken({
    sub: who.id,
    email: `${who.id}@acme.example`,
    email_verified: true,
    nonce: 'n',
  })
  return () => who.post(`${AUTH}/link-social`, { provider: 'acme', idToken: { token, nonce: 'n' } })
}
async function byPasskey(who: User): Promise<() => Promise<Answer>> {
  const { body } = await passkeys.creationOptions(who)
  const response = createAuthenticator().create(body, kernel.publicUrl())
  return () => passkeys.verify('registration', who, { response, challengeId: body.challengeId })
}

test('50 sign-ins at once add 50 users, each with one session', async () => {
  const all = await Promise.all(Array.from({ length: 50 }, () => signInAnonymously(t)))
  assert.equal(new Set(all.map(({ id }) => id)).size, 50)
  assert.equal(new Set(all.map(({ token }) => token)).size, 50)
  for (const who of all) assert.equal(await sessionsOf(who), 1)
})

test('of upgrades by an address, a passkey and a provider at once exactly one happens, and begins the only session', async () => {
  for (let round = 0; round < 6; round++) {
    const who = await signInAnonymously(t)
    const token = await linkFor(who, `round-${who.id}@example.com`)
    const ways = [await byProvider(who), await byPasskey(who), () => follow(who, token)]
    const order = [...ways.slice(round % 3), ...ways.slice(0, round % 3)]
    const answers = await Promise.all(order.map((begin) => begin()))
    const statuses = answers.map(({ status }) => status).toSorted()
    assert.equal(statuses.filter((status) => status === 200).length, 1, `${statuses}`)
    assert.ok(
      statuses.every((status) => status < 500),
      `${statuses}`,
    )
    assert.equal(await upgradesOf(who), 1)
    assert.equal(await sessionsOf(who), 1)
    assert.equal((await userOf(who))?.isAnonymous, false)
    const accounts = await db.selectFrom('account').select('id').where('userId', '=', who.id).execute()
    const keys = await db.selectFrom('passkey').select('id').where('userId', '=', who.id).execute()
    assert.equal(accounts.length + keys.length, 1)
  }
})

test('of 20 clicks on one link at once exactly one counts', async () => {
  const who = await signInAnonymously(t)
  const token = await linkFor(who, `click-${who.id}@example.com`)
  const answers = await Promise.all(Array.from({ length: 20 }, () => follow(who, token)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.ok(answers.every(({ status }) => status === 200 || status === 401))
  assert.equal(await upgradesOf(who), 1)
})

test('of anonymous users who have signed up with one address exactly one gets it, and the others stay as they are', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => signInAnonymously(t)))
  const email = 'wanted@example.com'
  const tokens: string[] = []
  for (const who of all) tokens.push(await linkFor(who, email))
  const answers = await Promise.all(all.map((who, index) => follow(who, tokens[index] ?? '')))
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array(7).fill(401)])
  const anonymous = (await Promise.all(all.map(userOf))).filter((user) => user?.isAnonymous === true)
  assert.equal(anonymous.length, 7)
  assert.ok(anonymous.every((user) => user?.email.endsWith('@anonymous.invalid')))
})

test('pruning beside upgrades deletes no one who has a session', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => signInAnonymously(t)))
  const createdAt = new Date(kernel.now().getTime() - 31 * DAY)
  const ids = all.map(({ id }) => id)
  await db.updateTable('user').set({ createdAt }).where('id', 'in', ids).execute()
  const upgrades = await Promise.all(all.map(byPasskey))
  const prune = t.service.recurring.find(({ name }) => name === 'prune-anonymous-users')
  const [answers] = await Promise.all([
    Promise.all(upgrades.map((upgrade) => upgrade())),
    ...Array.from({ length: 5 }, () => prune?.run()),
  ])
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(20).fill(200),
  )
  const left = await db.selectFrom('user').select('isAnonymous').where('id', 'in', ids).execute()
  assert.deepEqual(left, Array(20).fill({ isAnonymous: false }))
})

test('a sign-out beside an upgrade leaves an anonymous user without a session, or a known one', async () => {
  for (let round = 0; round < 10; round++) {
    const who = await signInAnonymously(t)
    const upgrade = await byPasskey(who)
    const [upgraded, out] = await Promise.all([upgrade(), who.post(`${AUTH}/sign-out`)])
    assert.ok([200, 401].includes(upgraded.status) && [200, 401].includes(out.status))
    const user = await userOf(who)
    assert.equal(user?.isAnonymous, upgraded.status !== 200)
    assert.equal(await sessionsOf(who), upgraded.status === 200 ? 1 : 0)
  }
})
