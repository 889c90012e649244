import assert from 'node:assert/strict'
import { test } from 'node:test'
import { issueTicket } from '#identity/tickets.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { BROWSER, FORM, PASSWORD, type User } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import {
  codeOf,
  cookiesOf,
  insertFactor,
  PENDING_COOKIE,
  SESSION_COOKIE,
  wrongCode,
} from '#test/second-factor.ts'
import { browserMark } from '../door/cookies.ts'
import { codeHashesOf } from '../mailing/link-code.ts'

const { t, idp, kernel, db, idToken } = await startSocialService({
  email: { sign_in_after_verification: true },
  ...EVERY_FEATURE,
})
const passkeys = ceremoniesOf(t)
const AUTH = '/api/auth'

/** The outcome of a way in, up to its second factor: what the browser and the client have got. */
type Reached = {
  readonly cookies: Readonly<Record<string, string>>
  readonly authToken: string | null
  /** Undefined for a page or a redirect. */
  readonly methods?: readonly string[] | undefined
}
type Answered = Awaited<ReturnType<typeof t.anon.post>>
const reached = (answer: Answered): Reached => ({
  ...{ cookies: cookiesOf(answer), authToken: answer.headers.get('set-auth-token') },
  methods: answer.body?.twoFactorMethods,
})

const post = async (path: string, body: object) => reached(await t.anon.post(`${AUTH}${path}`, body))
const BROWSER_MARK = 'mark of the browser'
/** Of the mail of the sign-up, in a browser with the mark. Its session has set up the factor too, which a first proof then keeps. */
async function linkFor({ id: userId, email: address }: User): Promise<string> {
  const [{ id: session } = { id: '' }] = await db
    .selectFrom('session')
    .select('id')
    .where('userId', '=', userId)
    .execute()
  await db.updateTable('twoFactor').set({ addedBy: session }).where('userId', '=', userId).execute()
  return issueTicket(kernel, 'verify-email', {
    ...{ userId, address, sessionId: null, lifetime: 3_600_000 },
    payload: { browser: browserMark(BROWSER_MARK), session },
  })
}

const MAILED_CODE = '287082'
/** The token of a mail that signs in, to a proven address. */
async function signInMailTo(user: User): Promise<string> {
  await verified(user)
  const [codeHash] = codeHashesOf(kernel, 'sign-in', user.email, MAILED_CODE)
  const code = { codeHash, codeExpiresAt: new Date(kernel.now().getTime() + 300_000), browser: null }
  const ticket = { userId: null, sessionId: null, address: user.email, payload: {} }
  return issueTicket(kernel, 'sign-in', { ...ticket, lifetime: 300_000, code })
}

type Person = { readonly user: User; readonly secret: string }
/** Signs a user in who has an authenticator app. `methods`: those that are left for the second factor. */
type Way = { readonly methods: readonly string[]; enter(person: Person): Promise<Reached> }
const BOTH = ['totp', 'otp']

const WAYS: Readonly<Record<string, Way>> = {
  'POST /sign-in/email': {
    methods: BOTH,
    enter: ({ user: { email } }) =>
      post('/sign-in/email', { email, password: PASSWORD, callbackURL: '/app' }),
  },
  'POST /sign-in/username': {
    methods: BOTH,
    async enter({ user }) {
      const username = user.id.slice(-12)
      await user.post(`${AUTH}/update-user`, { username })
      return post('/sign-in/username', { username, password: PASSWORD })
    },
  },
  'GET /verify-email': {
    methods: ['totp'],
    async enter({ user }) {
      const headers = { cookie: `service-auth.sign-up=${encodeURIComponent(BROWSER_MARK)}` }
      return reached(await t.anon.get(`${AUTH}/verify-email?token=${await linkFor(user)}`, { headers }))
    },
  },
  'POST /verify-email': {
    methods: ['totp'],
    enter: async ({ user }) => post('/verify-email', { token: await linkFor(user), password: PASSWORD }),
  },
  'POST /confirm/verify-email': {
    methods: ['totp'],
    async enter({ user }) {
      const raw = new URLSearchParams({ token: await linkFor(user), password: PASSWORD, callbackURL: '/app' })
      const answer = await t.anon.send('POST', `${AUTH}/confirm/verify-email`, {
        ...{ raw: raw.toString(), headers: { ...FORM, ...BROWSER } },
      })
      assert.equal(answer.headers.get('location'), '/app?twoFactorRedirect=true&methods=totp')
      return reached(answer)
    },
  },
  'GET /magic-link/verify': {
    methods: ['totp'],
    async enter({ user }) {
      return reached(await t.anon.get(`${AUTH}/magic-link/verify?token=${await signInMailTo(user)}`))
    },
  },
  'POST /confirm/magic-link': {
    methods: ['totp'],
    async enter({ user }) {
      const raw = new URLSearchParams({ token: await signInMailTo(user), callbackURL: '/app' })
      const answer = await t.anon.send('POST', `${AUTH}/confirm/magic-link`, {
        ...{ raw: raw.toString(), headers: { ...FORM, ...BROWSER } },
      })
      assert.equal(answer.headers.get('location'), '/app?twoFactorRedirect=true&methods=totp')
      return reached(answer)
    },
  },
  'POST /sign-in/email-otp': {
    methods: ['totp'],
    async enter({ user }) {
      await signInMailTo(user)
      return post('/sign-in/email-otp', { email: user.email, otp: MAILED_CODE })
    },
  },
  'POST /sign-in/social': {
    // The provider has proven the user's own address, so the mailbox has counted.
    methods: ['totp'],
    async enter({ user }) {
      await verified(user)
      const claims = { sub: user.id, email: user.email, email_verified: true, nonce: 'n' }
      const token = await idToken(claims)
      return post('/sign-in/social', { provider: 'acme', idToken: { token, nonce: 'n' } })
    },
  },
  'GET /callback/{provider}': {
    // The provider has proven the user's own address, so the mailbox has counted.
    methods: ['totp'],
    async enter({ user }) {
      await verified(user)
      idp.visitor = person('Ada', { sub: user.id, email: user.email })
      const visitor = createVisitor(t)
      const target = await visitor.signIn({ callbackURL: '/app' })
      assert.equal(target, '/app?twoFactorRedirect=true&methods=totp')
      const names = [PENDING_COOKIE, SESSION_COOKIE]
      const cookies = names.map((name) => [name, visitor.cookie(name) ?? ''])
      return { cookies: Object.fromEntries(cookies), authToken: null }
    },
  },
  'POST /passkey/verify-authentication': {
    methods: BOTH,
    async enter({ user, secret }) {
      const authenticator = createAuthenticator()
      await show(user, secret)
      await passkeys.register(user, authenticator)
      return reached(await passkeys.signIn(authenticator, { userVerified: false }))
    },
  },
}

/** Routes that declare the failures of a sign-in, and start no session before a second factor for another reason. */
const OTHERS: Readonly<Record<string, string>> = {
  'POST /sign-in/anonymous': 'an anonymous user has no second factor',
  'POST /sign-up/email': 'a new user has no second factor',
  'POST /admin/exchange-handoff': 'an impersonated session has what the session of its admin has shown',
  'POST /device/token': 'its session has shown what the one that approved it had shown',
  'POST /one-time-token/verify': 'its session has shown what the one that generated the token had shown',
  'POST /two-factor/verify-totp': 'verifies the second factor',
  'POST /two-factor/verify-otp': 'verifies the second factor',
  'POST /two-factor/verify-backup-code': 'verifies the second factor',
  'POST /email-otp/verify-email': 'signs in at the first proof, which removes a factor that may be of others',
  'POST /confirm/change-email': 'starts no session',
  'POST /confirm/delete-user': 'starts no session',
  'POST /confirm/reset-password': 'starts no session',
}

/** Adding a passkey beside a factor demands that the session has shown the factor. By the last code, so that this one is left. */
const show = (user: User, secret: string) =>
  user.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, secret, -1) })
const verified = ({ id }: User) =>
  db
    .updateTable('user')
    .set({ emailVerified: true, emailProvenAt: new Date() })
    .where('id', '=', id)
    .execute()
const sessionsOf = async ({ id }: User) =>
  (await db.selectFrom('session').select('id').where('userId', '=', id).execute()).length

test('every way in is a row of this test', async () => {
  const { paths } = (await t.anon.get('/openapi.json')).body
  const declaring = Object.entries<Record<string, { responses: Record<string, { description: string }> }>>(
    paths,
  ).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { responses }]) =>
        /BANNED_USER.*EMAIL_NOT_VERIFIED|EMAIL_NOT_VERIFIED.*BANNED_USER/s.test(
          responses[403]?.description ?? '',
        ),
      )
      .map(([method]) => `${method.toUpperCase()} ${path.replace(AUTH, '')}`),
  )
  // It redirects after a failure, so it declares none.
  const ways = new Set([...declaring, 'GET /callback/{provider}'])
  assert.deepEqual([...ways].toSorted(), [...Object.keys(WAYS), ...Object.keys(OTHERS)].toSorted())
})

for (const [route, { methods, enter }] of Object.entries(WAYS))
  test(`${route} gives no session row, cookie or token before the second factor`, async () => {
    const user = await t.signUp('Ada')
    const secret = await insertFactor(t, user)
    const before = await sessionsOf(user)
    const { cookies, authToken, methods: offered = methods } = await enter({ user, secret })
    assert.equal(authToken, null)
    assert.deepEqual([cookies[SESSION_COOKIE], offered], ['', methods])
    assert.equal(await sessionsOf(user), before)
    const token = cookies[PENDING_COOKIE] ?? ''
    assert.match(token, /^2fa_/)

    const verify = (code: string) => t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code })
    const wrong = await verify(wrongCode(t, secret))
    assert.deepEqual([wrong.status, wrong.headers.get('set-auth-token')], [401, null])
    assert.equal(await sessionsOf(user), before)
    const right = await verify(codeOf(t, secret))
    assert.deepEqual([right.status, right.body.user?.id], [200, user.id], right.text)
    assert.equal(await sessionsOf(user), before + 1)
  })

test('a link in a mail verifies the address of a user with codes by mail, and starts no session', async () => {
  const user = await t.signUp('Ada')
  await insertFactor(t, user, 'otp')
  const before = await sessionsOf(user)
  const answer = await t.anon.post(`${AUTH}/verify-email`, { token: await linkFor(user), password: PASSWORD })
  assert.deepEqual([answer.status, answer.body.user.emailVerified, answer.body.token], [200, true, undefined])
  assert.deepEqual([await sessionsOf(user), cookiesOf(answer)], [before, {}])
})

test('a passkey with user verification counts as both factors', async () => {
  const user = await t.signUp('Ada')
  await show(user, await insertFactor(t, user))
  const authenticator = createAuthenticator()
  await passkeys.register(user, authenticator)
  const answer = await passkeys.signIn(authenticator)
  assert.deepEqual([answer.status, answer.body.user.id], [200, user.id])
  assert.match(answer.body.token, /^[\w-]{43}$/)
})
