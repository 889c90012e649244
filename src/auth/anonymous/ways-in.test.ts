import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { type Actor, type Answer, actor, linkIn, testService, type User } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import {
  createVisitor,
  oidcSettings,
  person,
  TO_LOOPBACK,
  type Visitor,
} from '#test/identity-provider/visits.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { SESSION_COOKIE } from '#test/second-factor.ts'

const { t, idp, db, accountsOf, idToken } = await startSocialService({
  anonymous: { enabled: true },
  one_time_token: { enabled: true },
})
const passkeys = ceremoniesOf(t)
const AUTH = '/api/auth'
const codeOf = ({ status, body }: Answer) => [status, body?.code]
const me = async (who: Actor) => (await who.get(`${AUTH}/get-session`)).body?.user

/** The session that an upgrade has started. */
const renewed = ({ headers }: Answer): Actor =>
  actor(t.url, { authorization: `Bearer ${headers.get('set-auth-token')}` })
const inBrowser = (visitor: Visitor): Actor =>
  actor(t.url, { authorization: `Bearer ${visitor.cookie(SESSION_COOKIE)}` })
async function otherSession(who: User): Promise<Actor> {
  const { body } = await who.get(`${AUTH}/one-time-token/generate`)
  const { token } = (await t.anon.post(`${AUTH}/one-time-token/verify`, { token: body.token })).body.session
  return actor(t.url, { authorization: `Bearer ${token}` })
}
/** A browser with the session of an anonymous user. */
async function anonymousVisitor(): Promise<{ readonly who: User; readonly visitor: Visitor }> {
  const [who, visitor] = [await signInAnonymously(t), createVisitor(t)]
  visitor.setCookie(SESSION_COOKIE, who.token)
  return { who, visitor }
}
async function link(visitor: Visitor, path = '/link-social', more = {}): Promise<string> {
  return visitor.arrive(await visitor.visit(await visitor.begin({ callbackURL: '/app', ...more }, path)))
}

test('a passkey makes the anonymous user a known one, who signs in with it', async () => {
  const who = await signInAnonymously(t)
  const other = await otherSession(who)
  const authenticator = createAuthenticator()
  const added = await passkeys.register(who, authenticator)
  assert.equal(added.status, 200, added.text)
  const own = renewed(added)
  assert.partialDeepStrictEqual(await me(own), { id: who.id, email: who.email, isAnonymous: false })
  assert.deepEqual([await me(who), await me(other)], [undefined, undefined])
  const entered = await passkeys.signIn(authenticator)
  assert.partialDeepStrictEqual(entered.body.user, { id: who.id, isAnonymous: false })
  const last = await own.post(`${AUTH}/passkey/delete-passkey`, { id: added.body.id })
  assert.deepEqual(codeOf(last), [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT'])
  assert.deepEqual(await t.mails(), [])
})

test('a passkey that ends the other sessions leaves the one that it begins', async () => {
  const who = await signInAnonymously(t)
  const added = await passkeys.register(who, createAuthenticator(), { revokeOtherSessions: true })
  assert.equal(added.status, 200, added.text)
  assert.partialDeepStrictEqual(await me(renewed(added)), { id: who.id, isAnonymous: false })
  assert.equal(await me(who), undefined)
})

test('the session that begins with a new passkey has shown it: the user adds an address next, and deletes the account later', async () => {
  const who = await signInAnonymously(t)
  const own = renewed(await passkeys.register(who, createAuthenticator()))
  const email = `next-${who.id}@example.com`
  assert.equal((await own.post(`${AUTH}/change-email`, { newEmail: email })).status, 200)
  assert.equal((await t.mails()).filter((mail) => mail.includes(`To: ${email}`)).length, 1)
  const since = new Date(Date.now() - 3_600_000)
  await db.updateTable('session').set({ authTime: since }).where('userId', '=', who.id).execute()
  const refused = await own.post(`${AUTH}/delete-user`)
  assert.deepEqual(codeOf(refused), [403, 'SESSION_NOT_FRESH'])
  assert.deepEqual(refused.body.details.accepts, ['passkey'])
})

for (const path of ['/link-social', '/sign-in/social'])
  test(`${path} links an account that nobody has to the anonymous user, who gets its free address and its name`, async () => {
    const { who, visitor } = await anonymousVisitor()
    idp.visitor = person('Ada')
    const { sub, email } = idp.visitor
    const target = await link(
      visitor,
      path,
      path === '/link-social' ? {} : { newUserCallbackURL: '/welcome' },
    )
    assert.equal(target, path === '/link-social' ? '/app' : '/welcome')
    const user = { id: who.id, email, emailVerified: true, isAnonymous: false, name: 'Ada' }
    assert.partialDeepStrictEqual(await me(inBrowser(visitor)), user)
    assert.equal(await me(who), undefined, 'who has put the session into this browser has none any more')
    assert.deepEqual(
      (await accountsOf(sub)).map(({ userId }) => userId),
      [who.id],
    )
    const again = createVisitor(t)
    assert.equal(await again.signIn({ callbackURL: '/app' }), '/app')
    assert.equal(await again.whoAmI(), email)
  })

test('an address that another user has is not taken over, and the users stay apart', async () => {
  const owner = await t.signUp('Bob')
  const { who, visitor } = await anonymousVisitor()
  idp.visitor = person('Eve', { email: owner.email })
  assert.equal(await link(visitor), '/app')
  const user = { id: who.id, email: who.email, isAnonymous: false }
  assert.partialDeepStrictEqual(await me(inBrowser(visitor)), user)
  assert.equal((await me(owner)).id, owner.id)
  const claimed = await anonymousVisitor()
  idp.visitor = person('Cem', { email_verified: false })
  assert.equal(await link(claimed.visitor), '/app')
  const { email } = claimed.who
  assert.partialDeepStrictEqual(await me(inBrowser(claimed.visitor)), { email, emailVerified: false })
})

for (const path of ['/link-social', '/sign-in/social'])
  test(`${path} with an account of another user signs in as that one, and leaves the anonymous user`, async () => {
    idp.visitor = person('Ada')
    const { email } = idp.visitor
    await createVisitor(t).signIn()
    const { who, visitor } = await anonymousVisitor()
    assert.equal(await link(visitor, path), '/app')
    assert.equal(await visitor.whoAmI(), email)
    assert.partialDeepStrictEqual(await me(who), { id: who.id, isAnonymous: true })
  })

test('an ID token upgrades too, and one of an account of another user signs in as that one', async () => {
  const who = await signInAnonymously(t)
  const claims = { sub: `token-${who.id}`, email: `${who.id}@example.com`, email_verified: true, nonce: 'n' }
  const given = async () => ({ provider: 'acme', idToken: { token: await idToken(claims), nonce: 'n' } })
  const upgraded = await who.post(`${AUTH}/sign-in/social`, await given())
  assert.partialDeepStrictEqual(upgraded.body.user, { id: who.id, isAnonymous: false })
  assert.equal((await me(renewed(upgraded))).id, who.id)
  assert.equal(await me(who), undefined)
  const other = await signInAnonymously(t)
  const linked = await other.post(`${AUTH}/link-social`, await given())
  assert.deepEqual(codeOf(linked), [409, 'ACCOUNT_ALREADY_LINKED_TO_DIFFERENT_USER'])
  const entered = await other.post(`${AUTH}/sign-in/social`, await given())
  assert.equal(entered.body.user.id, who.id)
  assert.equal((await me(other)).isAnonymous, true)
})

test('the account that made the user a known one stays at the first proof of its address, as that of a new user does', async () => {
  const who = await signInAnonymously(t)
  const claims = {
    sub: `first-${who.id}`,
    email: `first-${who.id}@example.com`,
    email_verified: true,
    nonce: 'n',
  }
  const given = { provider: 'acme', idToken: { token: await idToken(claims), nonce: 'n' } }
  const own = renewed(await who.post(`${AUTH}/link-social`, given))
  await t.anon.post(`${AUTH}/send-verification-email`, { email: claims.email })
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${claims.email}`)) ?? ''
  const token = new URL(linkIn(mail), t.url).searchParams.get('token')
  const verified = await own.post(`${AUTH}/verify-email`, { token })
  assert.equal(verified.status, 200, verified.text)
  assert.deepEqual(
    (await accountsOf(claims.sub)).map(({ userId }) => userId),
    [who.id],
  )
})

test('where sign-up is closed nobody becomes a known user by a passkey or by an account', async () => {
  const closed = await testService({
    controlUrl: t.controlUrl,
    config: {
      outbound: TO_LOOPBACK,
      auth: {
        anonymous: { enabled: true },
        email_password: { enable_signup: false },
        social: { sign_up: 'never', providers: { acme: oidcSettings(idp) } },
      },
    },
  })
  const who = await signInAnonymously(closed)
  const refused = [403, 'SIGN_UP_DISABLED']
  assert.deepEqual(codeOf(await ceremoniesOf(closed).register(who, createAuthenticator())), refused)
  const claims = { sub: `c-${who.id}`, email: `${who.id}@closed.example`, email_verified: true, nonce: 'n' }
  const given = { provider: 'acme', idToken: { token: await idToken(claims), nonce: 'n' } }
  assert.deepEqual(codeOf(await who.post(`${AUTH}/link-social`, given)), refused)
  assert.equal((await me(who)).isAnonymous, true)
})

test('where a verified address is required, a passkey alone or an account without one is not enough', async () => {
  const strict = await testService({
    controlUrl: t.controlUrl,
    config: {
      outbound: TO_LOOPBACK,
      auth: {
        anonymous: { enabled: true },
        email_password: { require_email_verification: true },
        social: { providers: { acme: oidcSettings(idp) } },
      },
    },
  })
  const [who, ceremonies] = [await signInAnonymously(strict), ceremoniesOf(strict)]
  const refused = [403, 'USER_IS_ANONYMOUS']
  assert.deepEqual(codeOf(await ceremonies.register(who, createAuthenticator())), refused)
  const given = async (verified: boolean) => {
    const claims = {
      sub: `s-${who.id}`,
      email: `${who.id}@strict.example`,
      email_verified: verified,
      nonce: 'n',
    }
    return { provider: 'acme', idToken: { token: await idToken(claims), nonce: 'n' } }
  }
  assert.deepEqual(codeOf(await who.post(`${AUTH}/link-social`, await given(false))), refused)
  assert.equal((await me(who)).isAnonymous, true)
  const linked = await who.post(`${AUTH}/link-social`, await given(true))
  assert.partialDeepStrictEqual(linked.body, { status: true, url: '' })
  assert.partialDeepStrictEqual(await me(renewed(linked)), { isAnonymous: false, emailVerified: true })
})
