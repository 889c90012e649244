import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { insertLinkedAccount } from '#identity/linked-accounts.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { type Actor, type Answer, PASSWORD, type User } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import {
  codeOf,
  cookiesOf,
  enrolOtp,
  enrolTotp,
  mailedCode,
  pendingSignIn,
  SESSION_COOKIE,
  TRUSTED_COOKIE,
  wrongCode,
} from '#test/second-factor.ts'

const { t, idp, db, kernel, accountsOf, idToken } = await startSocialService()
const passkeys = ceremoniesOf(t)
const AUTH = '/api/auth'
const MINUTE = 60_000

const reauthenticate = (who: Actor, body: object) => who.post(`${AUTH}/reauthenticate`, body)
const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)
const withToken = (token: string): Actor => {
  const headers = { authorization: `Bearer ${token}` }
  return {
    ...{ headers, send: (method, path, ask) => t.anon.send(method, path, { ...ask, headers }) },
    get: (path) => t.anon.get(path, { headers }),
    post: (path, body) => t.anon.post(path, body, { headers }),
  }
}
const unlinkPassword = (who: Actor) => who.post(`${AUTH}/unlink-account`, { providerId: 'credential' })
const accepted = ({ body }: Answer): unknown => body?.details?.accepts
/** Makes everything that sessions of the user have shown older. The provider's tokens follow the real clock, which stays. */
const age = (userId: string, milliseconds: number) => {
  const earlier = (column: string) =>
    sql<Date>`${sql.ref(column)} - make_interval(secs => ${milliseconds / 1_000})`
  const [authTime, passwordShownAt] = [earlier('auth_time'), earlier('password_shown_at')]
  const older = { authTime, passwordShownAt, factorShownAt: earlier('factor_shown_at') }
  return db.updateTable('session').set(older).where('userId', '=', userId).execute()
}
/** With a passkey too, so that the password is not the last way in. */
const newUser = async (name = 'Ada') => {
  const user = await t.signUp(name)
  const authenticator = createAuthenticator()
  assert.equal((await passkeys.register(user, authenticator)).status, 200)
  return { user, authenticator }
}

const inBrowser = (user: Pick<User, 'token'>) => {
  const visitor = createVisitor(t)
  visitor.setCookie(SESSION_COOKIE, user.token)
  return visitor
}
/** A user who signed in by the provider, in a browser. */
const socialUser = async (name: string) => {
  idp.visitor = person(name)
  const visitor = createVisitor(t)
  assert.equal(await visitor.signIn(), '/app')
  const [account] = await accountsOf(idp.visitor.sub)
  assert.ok(account)
  return {
    visitor,
    userId: account.userId,
    sub: idp.visitor.sub,
    actor: () => withToken(visitor.cookie(SESSION_COOKIE) ?? ''),
  }
}

// Before the other tests turn the clock of the service, which that of the provider does not follow.
test('a visit to a provider that is linked to the user makes the session fresh', async () => {
  const ada = await socialUser('Ada')
  await age(ada.userId, 25 * 60 * MINUTE)
  const setPassword = () => ada.actor().post(`${AUTH}/set-password`, { newPassword: PASSWORD })
  const refused = await setPassword()
  assert.deepEqual([said(refused), accepted(refused)], ['403 SESSION_NOT_FRESH', ['acme']])
  const old = ada.visitor.cookie(SESSION_COOKIE)
  const begun = await ada.visitor.begin({}, '/reauthenticate')
  assert.equal(await ada.visitor.arrive(await ada.visitor.visit(begun)), '/app')
  assert.notEqual(ada.visitor.cookie(SESSION_COOKIE), old)
  assert.equal(said(await withToken(old ?? '').get(`${AUTH}/get-session`)), '401 UNAUTHORIZED')
  assert.equal(said(await setPassword()), '200')
})

test('an account of the provider that is not linked to the user shows nothing, and links nothing', async () => {
  const ada = await socialUser('Ada')
  idp.visitor = person('Stranger')
  const begun = await ada.visitor.begin({}, '/reauthenticate')
  assert.equal(await ada.visitor.arrive(await ada.visitor.visit(begun)), '/failed?error=account_not_linked')
  assert.deepEqual(await accountsOf(idp.visitor.sub), [])
  assert.equal((await ada.actor().get(`${AUTH}/get-session`)).status, 200, 'the session keeps its token')

  const bob = await t.signUp('Bob')
  const none = await reauthenticate(bob, { provider: 'acme' })
  assert.equal(said(none), '404 ACCOUNT_NOT_FOUND', 'nothing is linked')
})

test('a visit that began under a former token of the session gives nobody the new one', async () => {
  const ada = await t.signUp('Ada')
  idp.visitor = person('Ada')
  await insertLinkedAccount(kernel, ada.id, { providerId: 'acme', accountId: idp.visitor.sub }, {})
  const thief = inBrowser(ada)
  const callback = await thief.visit(await thief.begin({}, '/reauthenticate'))
  const { body } = await reauthenticate(ada, { password: PASSWORD })
  thief.setCookie(SESSION_COOKIE, undefined)
  assert.equal(await thief.arrive(callback), '/failed?error=account_not_linked')
  assert.equal(thief.cookie(SESSION_COOKIE), undefined)
  assert.equal(said(await withToken(body.token).get(`${AUTH}/get-session`)), '200')
})

test('a password makes a session fresh again, under a new token', async () => {
  const { user: ada } = await newUser()
  await age(ada.id, 11 * MINUTE)
  const refused = await unlinkPassword(ada)
  assert.deepEqual([said(refused), accepted(refused)], ['403 SESSION_NOT_FRESH', ['password']])
  assert.equal(said(await reauthenticate(ada, { password: 'wrong password' })), '400 INVALID_PASSWORD')

  const answer = await reauthenticate(ada, { password: PASSWORD })
  assert.equal(answer.status, 200, answer.text)
  const { token, session, user } = answer.body
  assert.deepEqual([user.id, session.token, cookiesOf(answer)[SESSION_COOKIE]], [ada.id, token, token])
  assert.equal(answer.headers.get('set-auth-token'), token)
  assert.equal(said(await ada.get(`${AUTH}/get-session`)), '401 UNAUTHORIZED', 'the old token')
  assert.equal(said(await unlinkPassword(withToken(token))), '200')
})

test('a proof of a time before the clock was set back is none of the last ten minutes', async () => {
  const { user: ada } = await newUser()
  await age(ada.id, -60 * MINUTE)
  assert.equal(said(await unlinkPassword(ada)), '403 SESSION_NOT_FRESH')
})

test('of several requests with one token, one gets the new one', async () => {
  const ada = await t.signUp('Ada')
  const answers = await Promise.all([1, 2, 3].map(() => reauthenticate(ada, { password: PASSWORD })))
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 401, 401])
})

test('a code of the authenticator app, by mail or of the backup shows the factor, and a wrong one is counted', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const by = async (code: string) => reauthenticate(ada, { code })
  for (let tries = 0; tries < 9; tries++)
    assert.equal(said(await by(wrongCode(t, ada.secret))), '401 INVALID_CODE')
  const first = await by(codeOf(t, ada.secret))
  assert.equal(first.status, 200, first.text)
  const again = withToken(first.body.token)
  assert.equal(said(await reauthenticate(again, { code: codeOf(t, ada.secret) })), '401 INVALID_CODE', 'used')
  const second = await reauthenticate(again, { code: ada.backupCodes[0] })
  assert.equal(second.status, 200, second.text)
  await t.mails()
  const third = withToken(second.body.token)
  await third.post(`${AUTH}/two-factor/send-otp`)
  assert.equal((await reauthenticate(third, { code: mailedCode(await t.mails()) })).status, 200)

  const bob = await t.signUp('Bob')
  assert.equal(said(await reauthenticate(bob, { code: '123456' })), '400 TWO_FACTOR_NOT_ENABLED')
})

test('a code by mail takes no authenticator app away, and takes itself away', async () => {
  const shownByMail = async (user: User) => {
    await age(user.id, 11 * MINUTE)
    await user.post(`${AUTH}/two-factor/send-otp`)
    const { body } = await reauthenticate(user, { code: mailedCode(await t.mails()) })
    return withToken(body.token).post(`${AUTH}/two-factor/disable`, { password: PASSWORD })
  }
  await t.mails()
  const ada = await shownByMail(await enrolTotp(t, await t.signUp('Ada')))
  assert.deepEqual([said(ada), accepted(ada)], ['403 SESSION_NOT_FRESH', ['totp', 'backup_code']])
  assert.equal(said(await shownByMail(await enrolOtp(t, await t.signUp('Bob')))), '200')
})

test('only a passkey of the same user counts, and a new one not in the session that added it', async () => {
  const { user: ada, authenticator } = await newUser()
  const show = async (who: Actor, by = authenticator) => {
    const { body: options } = await passkeys.requestOptions(t.anon)
    const response = by.get(options, kernel.publicUrl())
    return reauthenticate(who, { response, challengeId: options.challengeId })
  }
  const { authenticator: foreign } = await newUser('Bob')
  assert.equal(said(await show(ada, foreign)), '401 PASSKEY_NOT_FOUND')
  await age(ada.id, 25 * 60 * MINUTE)
  const { body } = await show(ada)
  const refused = await passkeys.creationOptions(withToken(body.token))
  assert.deepEqual([said(refused), accepted(refused)], ['403 SESSION_NOT_FRESH', ['password']])

  const signedIn = withToken((await passkeys.signIn(authenticator)).body.token)
  await age(ada.id, 25 * 60 * MINUTE)
  assert.equal(said(await passkeys.creationOptions(signedIn)), '403 SESSION_NOT_FRESH')
  const shown = await show(signedIn)
  assert.equal((await passkeys.creationOptions(withToken(shown.body.token))).status, 200)
})

test('a visit belongs to its session and to its browser', async () => {
  const ada = await socialUser('Ada')
  const begun = await ada.visitor.begin({}, '/reauthenticate')
  const callback = await ada.visitor.visit(begun)
  const bob = inBrowser(await t.signUp('Bob'))
  assert.match(await bob.arrive(callback), /error=state_mismatch/)
  ada.visitor.setCookie(SESSION_COOKIE, (await t.signUp('Eve')).token)
  assert.equal(await ada.visitor.arrive(callback), '/failed?error=state_mismatch', 'another session by now')
})

test('an ID token of the linked account shows it too', async () => {
  const ada = await socialUser('Ada')
  await age(ada.userId, 25 * 60 * MINUTE)
  const auth_time = Math.floor(kernel.now().getTime() / 1_000)
  const by = async (sub: string) => {
    const token = await idToken({ sub, email: 'ada@example.com', auth_time })
    return reauthenticate(ada.actor(), { provider: 'acme', idToken: { token } })
  }
  assert.equal(said(await by('another-one')), '403 ACCOUNT_NOT_LINKED')
  const shown = await by(ada.sub)
  assert.equal(shown.status, 200, shown.text)
  assert.equal(
    said(await withToken(shown.body.token).post(`${AUTH}/set-password`, { newPassword: PASSWORD })),
    '200',
  )
})

test('a request without a proof is refused', async () => {
  assert.equal(said(await reauthenticate(await t.signUp('Ada'), {})), '400 VALIDATION_ERROR')
  assert.equal(said(await reauthenticate(t.anon, { password: PASSWORD })), '401 UNAUTHORIZED')
})

test('SESSION_NOT_FRESH ends the trust in that browser, so that a new sign-in asks for the code', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  const trusted = await t.anon.post(`${AUTH}/two-factor/verify-totp`, {
    ...{ token, code: codeOf(t, ada.secret), trustDevice: true },
  })
  const device = cookiesOf(trusted)[TRUSTED_COOKIE] ?? ''
  const cookie = `${TRUSTED_COOKIE}=${device}`
  const signedIn = await pendingSignIn(t.anon, ada.email, { cookie })
  const renewed = `${TRUSTED_COOKIE}=${cookiesOf(signedIn)[TRUSTED_COOKIE]}`
  const disable = () =>
    t.anon.post(
      `${AUTH}/two-factor/disable`,
      { password: PASSWORD },
      { headers: { authorization: `Bearer ${signedIn.body.token}`, cookie: renewed } },
    )
  const refused = await disable()
  assert.deepEqual([said(refused), accepted(refused)], ['403 SESSION_NOT_FRESH', ['totp', 'backup_code']])
  assert.equal(cookiesOf(refused)[TRUSTED_COOKIE], '')
  assert.equal((await pendingSignIn(t.anon, ada.email, { cookie: renewed })).body.twoFactorRedirect, true)
  const rows = await db.selectFrom('trustedDevice').where('userId', '=', ada.id).selectAll().execute()
  assert.deepEqual(rows, [])
})

test('a session from before its proofs were kept is not fresh, and can show one', async () => {
  const ada = await t.signUp('Ada')
  const before = { shown: [], authTime: null, passwordShownAt: null, factorShownAt: null }
  await db.updateTable('session').set(before).where('userId', '=', ada.id).execute()
  assert.equal(said(await passkeys.creationOptions(ada)), '403 SESSION_NOT_FRESH')
  const { body } = await reauthenticate(ada, { password: PASSWORD })
  assert.equal((await passkeys.creationOptions(withToken(body.token))).status, 200)
})
