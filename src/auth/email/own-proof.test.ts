import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertLinkedAccount } from '#identity/linked-accounts.ts'
import { type Authenticator, createAuthenticator } from '#test/authenticator.ts'
import { browser } from '#test/cookie-jar.ts'
import { type Actor, actor, endpointOf, linkIn, PASSWORD, testService, type User } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'

const AUTH = '/api/auth'
const t = await testService({ config: { auth: { email: { send_on_sign_up: true } } } })
const { kernel } = t.service
const { db } = kernel
const { register, signIn: signInByPasskey } = ceremoniesOf(t)

/** A session of a user, and its id. */
type InSession = { readonly who: Actor; readonly sessionId: string }

async function sessionOf({ token }: { readonly token: string }): Promise<InSession> {
  const who = actor(t.url, { authorization: `Bearer ${token}` })
  return { who, sessionId: (await who.get(`${AUTH}/get-session`)).body.session.id }
}

/** A user who has signed up, with a second session by the password. The link is that of the sign-up. */
async function signUpTwice() {
  const user = await t.signUp('Ada')
  const link = linkIn((await t.mails()).at(-1) ?? '')
  const { body } = await t.anon.post(`${AUTH}/sign-in/email`, { email: user.email, password: PASSWORD })
  return { user, link, signUp: await sessionOf(user), signIn: await sessionOf(body) }
}

type Added = { readonly authenticator: Authenticator; readonly passkey: string }

/** Adds a passkey, a linked account, an invitation and, if there is none, a second factor that waits for its first code. */
async function addAll({ who, sessionId }: InSession, user: User, name: string): Promise<Added> {
  const authenticator = createAuthenticator()
  const { status, body } = await register(who, authenticator)
  assert.equal(status, 200)
  const account = { providerId: 'github', accountId: `${name} of ${user.id}` }
  await insertLinkedAccount(kernel, user.id, account, {}, { addedBy: sessionId, settlesAt: null })
  const slug = `${name}-${user.id}`
  const made = await who.post(`${AUTH}/organization/create`, { name, slug })
  const invited = { organizationId: made.body.id, email: `${name}-${user.email}`, role: 'member' }
  assert.equal((await who.post(`${AUTH}/organization/invite-member`, invited)).status, 200)
  return { authenticator, passkey: body.id }
}

async function left({ id }: User) {
  const of = async (table: 'passkey' | 'session' | 'twoFactor' | 'verification') =>
    (await db.selectFrom(table).selectAll().where('userId', '=', id).execute()) as unknown[]
  const accounts = await db.selectFrom('account').select('accountId').where('userId', '=', id).execute()
  const invitations = await db
    .selectFrom('invitation')
    .select(['email', 'status'])
    .where('inviterId', '=', id)
    .orderBy('email')
    .execute()
  return {
    passkeys: (await of('passkey')).length,
    sessions: (await of('session')).length,
    factors: (await of('twoFactor')).length,
    tickets: (await of('verification')).length,
    accounts: accounts.map(({ accountId }) => accountId.split(' of ')[0]).toSorted(),
    pending: invitations.filter(({ status }) => status === 'pending').map(({ email }) => email.split('-')[0]),
  }
}

const isAlive = async ({ who }: InSession) => (await who.get(`${AUTH}/get-session`)).status === 200
const byPassword = async ({ email }: User) =>
  (await t.anon.post(`${AUTH}/sign-in/email`, { email, password: PASSWORD })).status

for (const by of ['the link', 'the button'] as const)
  test(`a click with a session (${by}) keeps the password and what that session has added, and nothing of another one`, async () => {
    const { user, link, signUp: strange, signIn: own } = await signUpTwice()
    const [theirs, mine] = [await addAll(strange, user, 'theirs'), await addAll(own, user, 'mine')]
    await strange.who.post(`${AUTH}/two-factor/enable`, { password: PASSWORD })
    await t.mails()
    const token = new URL(link, t.url).searchParams.get('token')
    const clicked = await (by === 'the link'
      ? own.who.get(endpointOf(link))
      : own.who.post(`${AUTH}/verify-email`, { token }))
    assert.equal(clicked.status, 200, clicked.text)
    assert.deepEqual(await left(user), {
      ...{ passkeys: 1, sessions: 1, factors: 0, tickets: 0 },
      ...{ accounts: ['mine', user.id].toSorted(), pending: ['mine'] },
    })
    assert.deepEqual([await isAlive(strange), await isAlive(own)], [false, true])
    assert.equal((await signInByPasskey(theirs.authenticator)).body.code, 'PASSKEY_NOT_FOUND')
    assert.equal((await signInByPasskey(mine.authenticator)).status, 200)
    assert.equal(await byPassword(user), 200)
    assert.deepEqual(await t.mails(), [])
    const acts = await db
      .selectFrom('auditEvent')
      .select('details')
      .where('targetId', '=', user.id)
      .where('action', '=', 'email.verified')
      .execute()
    assert.deepEqual(acts, [{ details: { removedWhatOthersAdded: true } }])
  })

test('the right password elsewhere keeps what the session of the sign-up has added, for it has set the password', async () => {
  const { user, link, signUp: own, signIn: strange } = await signUpTwice()
  await addAll(strange, user, 'theirs')
  await addAll(own, user, 'mine')
  const token = new URL(link, t.url).searchParams.get('token')
  const clicked = await t.anon.post(`${AUTH}/verify-email`, { token, password: PASSWORD })
  assert.equal(clicked.status, 200, clicked.text)
  const { passkeys, sessions, accounts, pending } = await left(user)
  assert.deepEqual([passkeys, sessions, accounts, pending], [1, 1, ['mine', user.id].toSorted(), ['mine']])
  assert.deepEqual([await isAlive(strange), await isAlive(own)], [false, true])
})

test('the browser that signed up keeps the password and what it has added, also when it has signed out', async () => {
  const page = browser(t, { token: '' })
  const email = 'browser@example.com'
  const { body } = await page.post(`${AUTH}/sign-up/email`, { name: 'Ada', email, password: PASSWORD })
  const link = linkIn((await t.mails()).at(-1) ?? '')
  const user = { ...page, ...body.user, token: body.token } as User
  await addAll({ ...(await sessionOf(body)), who: page }, user, 'mine')
  await page.post(`${AUTH}/sign-out`)
  const strange = await sessionOf(
    (await t.anon.post(`${AUTH}/sign-in/email`, { email, password: PASSWORD })).body,
  )
  await addAll(strange, user, 'theirs')
  assert.equal((await page.get(endpointOf(link))).status, 200)
  const { passkeys, sessions, accounts, pending } = await left(user)
  assert.deepEqual([passkeys, sessions, accounts, pending], [1, 0, ['mine', user.id].toSorted(), ['mine']])
  assert.equal(await isAlive(strange), false)
  assert.equal(await byPassword(user), 200)
})

test('a link that was asked for without a session knows no sign-up: the right password keeps itself alone', async () => {
  const { user, signUp, signIn } = await signUpTwice()
  await addAll(signUp, user, 'one')
  await t.mails()
  await t.anon.post(`${AUTH}/send-verification-email`, { email: user.email })
  const token = new URL(linkIn((await t.mails()).at(-1) ?? ''), t.url).searchParams.get('token')
  const clicked = await t.anon.post(`${AUTH}/verify-email`, { token, password: PASSWORD })
  assert.equal(clicked.status, 200, clicked.text)
  const { passkeys, sessions, accounts, pending } = await left(user)
  assert.deepEqual([passkeys, sessions, accounts, pending], [0, 0, [user.id], []])
  assert.deepEqual([await isAlive(signUp), await isAlive(signIn)], [false, false])
  assert.equal(await byPassword(user), 200)
})

test('the browser of the click stays known, and another one does not', async () => {
  const { user, link } = await signUpTwice()
  const page = browser(t, { token: '' })
  await page.post(`${AUTH}/sign-in/email`, { email: user.email, password: PASSWORD })
  const devices = () => db.selectFrom('knownDevice').select('id').where('userId', '=', user.id).execute()
  const before = await devices()
  assert.equal(before.length, 3)
  assert.equal((await page.get(endpointOf(link))).status, 200)
  assert.deepEqual(await devices(), before.slice(-1))
})

test('the first proof ends every other link, and a later one resets no password', async () => {
  const { user, link, signUp } = await signUpTwice()
  const tokenIn = (mailed: string) => new URL(mailed, t.url).searchParams.get('token')
  const ask = async () => {
    await t.anon.post(`${AUTH}/send-verification-email`, { email: user.email })
    return tokenIn(linkIn((await t.mails()).at(-1) ?? ''))
  }
  const reset = async (token: string | null) => {
    const { status, body } = await t.anon.post(`${AUTH}/verify-email`, { token, newPassword: 'chosen anew' })
    return [status, body.code]
  }
  const other = await ask()
  assert.equal((await signUp.who.get(endpointOf(link))).status, 200)
  assert.deepEqual(await reset(other), [401, 'INVALID_TOKEN'])

  await db.updateTable('user').set({ emailVerified: false }).where('id', '=', user.id).execute()
  const again = await ask()
  assert.deepEqual(await reset(again), [401, 'INVALID_TOKEN'])
  assert.equal(await byPassword(user), 200)
  assert.equal((await t.anon.post(`${AUTH}/verify-email`, { token: again })).status, 200)
  assert.equal(await isAlive(signUp), true)
})
