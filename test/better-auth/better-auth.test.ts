import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { linkIn, PASSWORD, testService } from '#test/harness.ts'
import {
  CARRIERS,
  done,
  type KnownCode,
  newUser,
  newVisitor,
  type Outcome,
  refused,
  VERSIONS,
  type Version,
  type Visitor,
} from './clients.ts'
import { clientPaths, NOT_BUILT, SOCIAL } from './endpoints.ts'

const t = await testService()
/** All visitors by client version. */
const visitors: Record<Version, Visitor[]> = { '1.7.7': [], '1.2.12': [] }
const NEW_PASSWORD = 'battery staple horse'
const DAY = 86_400_000

for (const version of VERSIONS) {
  for (const by of CARRIERS) {
    const who = `better-auth ${version} by ${by}`
    const visitor = () => {
      const someone = newVisitor(t.url, version, by)
      visitors[version].push(someone)
      return someone
    }
    /** Creates a visitor who has just signed up. */
    const member = async () => {
      const ada = visitor()
      const person = newUser()
      const { user } = done(await ada.client.signUp.email(person))
      return { ...ada, ...person, id: user.id }
    }
    /** Signs the same user in on another device. */
    const elsewhere = async ({ email, password }: { email: string; password: string }) => {
      const other = visitor()
      done(await other.client.signIn.email({ email, password }))
      return other
    }

    test(`${who}: signs up, out, and in again by email and by username`, async () => {
      const { client, isUsernameAvailable } = visitor()
      const ada = newUser()
      assert.deepEqual(done(await isUsernameAvailable(ada)), { available: true })
      const { token, user } = done(await client.signUp.email(ada))
      assert.equal(user.email, ada.email)
      assert.deepEqual([user.username, user.displayUsername], [ada.username.toLowerCase(), ada.username])
      assert.ok(user.createdAt instanceof Date)
      assert.deepEqual(done(await isUsernameAvailable(ada)), { available: false })

      const known = done(await client.getSession({ query: { disableCookieCache: true } }))
      assert.equal(known?.session.token, token)
      assert.equal(known?.session.userId, user.id)
      assert.ok(known?.session.expiresAt instanceof Date)
      assert.deepEqual(known?.user, { ...known?.user, ...user })

      assert.equal(done(await client.signOut()).success, true)
      assert.equal(refused(await client.getSession()).status, 401)

      const byEmail = done(await client.signIn.email({ ...ada, rememberMe: false }))
      assert.deepEqual([byEmail.redirect, byEmail.url, byEmail.user.id], [false, null, user.id])
      assert.equal(done(await client.getSession())?.session.token, byEmail.token)
      const byUsername = done(await client.signIn.username(ada))
      assert.equal(byUsername?.user.id, user.id)
      assert.equal(done(await client.getSession())?.session.token, byUsername?.token)
    })

    test(`${who}: gets the callbackURL of a sign-in as redirect`, async () => {
      const { client, email, username, password } = await member()
      const callbackURL = '/app?tab=1'
      const sent = { redirect: true, url: callbackURL }
      assert.partialDeepStrictEqual(done(await client.signIn.email({ email, password, callbackURL })), sent)
      assert.partialDeepStrictEqual(
        done(await client.signIn.username({ username, password, callbackURL })),
        sent,
      )
    })

    test(`${who}: useSession returns the signed-in user`, async () => {
      const { client, useSession, email } = await member()
      assert.partialDeepStrictEqual(await useSession(), {
        data: { user: { email } },
        error: null,
        isPending: false,
      })
      done(await client.signOut())
      assert.partialDeepStrictEqual(await useSession(), {
        data: null,
        error: { status: 401 },
        isPending: false,
      })
    })

    test(`${who}: lists sessions and revokes one, all others, or all`, async () => {
      const here = await member()
      const others = [await elsewhere(here), await elsewhere(here), await elsewhere(here)] as const
      const own = done(await here.client.getSession())
      const result = done(await others[0].client.getSession())
      const sessions = done(await here.client.listSessions())
      assert.equal(sessions.length, 4)
      // Applications identify the current device this way.
      assert.equal(sessions.find(({ token }) => token === own?.session.token)?.id, own?.session.id)

      const { token = '' } = sessions.find(({ id }) => id === result?.session.id) ?? {}
      assert.equal(done(await here.client.revokeSession({ token })).status, true)
      assert.equal(refused(await others[0].client.getSession()).status, 401)
      done(await others[1].client.getSession())

      assert.equal(done(await here.client.revokeOtherSessions()).status, true)
      for (const { client } of others) assert.equal(refused(await client.getSession()).status, 401)
      done(await here.client.getSession())

      assert.equal(done(await here.client.revokeSessions()).status, true)
      assert.equal(refused(await here.client.getSession()).status, 401)
    })

    test(`${who}: verifies the email and changes it`, async () => {
      const { client, confirm, email } = await member()
      assert.equal(done(await client.sendVerificationEmail({ email, callbackURL: '/welcome' })).status, true)
      const query = { token: tokenIn(await linkTo(email)) }
      assert.equal(done(await client.verifyEmail({ query }))?.status, true)
      assert.equal(done(await client.getSession())?.user.emailVerified, true)
      assert.partialDeepStrictEqual(refused(await client.verifyEmail({ query })), {
        status: 401,
        code: 'INVALID_TOKEN',
      })

      const newEmail = `new-${email}`
      assert.equal(done(await client.changeEmail({ newEmail, callbackURL: '/settings' })).status, true)
      assert.equal(done(await client.getSession())?.user.email, email)
      // The old address is verified now, so it must confirm the change first.
      assert.equal((await confirm(await linkTo(email))).headers.get('location'), '/settings')
      // A browser without a session of the account is asked for the password.
      const clicked = await confirm(await linkTo(newEmail), by === 'Bearer' ? { password: PASSWORD } : {})
      assert.deepEqual([clicked.status, clicked.headers.get('location')], [303, '/settings'])
      assert.equal(done(await client.getSession())?.user.email, newEmail)
      assert.equal(refused(await client.changeEmail({ newEmail })).code, 'EMAIL_IS_THE_SAME')
    })

    test(`${who}: changes the password and ends every other session`, async () => {
      const here = await member()
      const other = await elsewhere(here)
      const change = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD }
      assert.equal(done(await here.client.changePassword(change)).token, null)
      done(await other.client.getSession())

      const again = { currentPassword: NEW_PASSWORD, newPassword: PASSWORD, revokeOtherSessions: true }
      const { token, user } = done(await here.client.changePassword(again))
      assert.equal(user.id, here.id)
      assert.equal(done(await here.client.getSession())?.session.token, token)
      assert.equal(refused(await other.client.getSession()).status, 401)
      assert.partialDeepStrictEqual(refused(await here.client.changePassword(again)), {
        status: 400,
        code: 'INVALID_PASSWORD',
      })
    })

    test(`${who}: resets a forgotten password through the link of a mail`, async () => {
      const { client, follow, forgetPassword, email } = await member()
      const known = done(await client.requestPasswordReset({ email, redirectTo: '/choose' }))
      assert.deepEqual([known.status, typeof known.message], [true, 'string'])
      assert.deepEqual(done(await forgetPassword({ email: newUser().email })), known)

      const clicked = await follow(await linkTo(email))
      const location = clicked.headers.get('location') ?? ''
      assert.match(location, /^\/choose\?token=/)
      const choice = { newPassword: NEW_PASSWORD, token: tokenIn(location) }
      assert.equal(done(await client.resetPassword(choice)).status, true)
      assert.partialDeepStrictEqual(refused(await client.resetPassword(choice)), {
        status: 400,
        code: 'INVALID_TOKEN',
      })
      assert.equal(refused(await client.getSession()).status, 401)
      assert.equal(refused(await client.signIn.email({ email, password: PASSWORD })).status, 401)
      done(await client.signIn.email({ email, password: NEW_PASSWORD }))
    })

    test(`${who}: changes the profile`, async () => {
      const { client } = await member()
      const { username } = newUser()
      const change = { name: 'Ada King', image: 'https://example.com/ada.png', username }
      assert.equal(done(await client.updateUser(change)).status, true)
      assert.partialDeepStrictEqual(done(await client.getSession())?.user, {
        ...change,
        username: username.toLowerCase(),
        displayUsername: username,
      })
    })

    test(`${who}: unlinks an account, but not the last`, async () => {
      const { client, unlinkAccount, id } = await member()
      // The account that a social sign-in will create.
      const now = new Date()
      const linked = { providerId: 'github', accountId: randomUUID(), password: null }
      await t.service.kernel.db
        .insertInto('account')
        .values({ ...linked, id: randomUUID(), userId: id, createdAt: now, updatedAt: now })
        .execute()

      const accounts = done(await client.listAccounts())
      assert.deepEqual(accounts.map(({ provider, providerId }) => [provider, providerId]).sort(), [
        ['credential', 'credential'],
        ['github', 'github'],
      ])
      const [password, github] = ['credential', 'github'].map((name) =>
        accounts.find(({ providerId }) => providerId === name),
      )
      assert.ok(password && github?.createdAt instanceof Date)
      assert.equal(done(await unlinkAccount(github)).status, true)
      assert.partialDeepStrictEqual(refused(await unlinkAccount(password)), {
        status: 400,
        code: 'FAILED_TO_UNLINK_LAST_ACCOUNT',
      })
    })

    test(`${who}: deletes the account, by password and by the link of a mail`, async () => {
      const { client, email, password } = await member()
      assert.equal(refused(await client.deleteUser({ password: 'wrong' })).code, 'INVALID_PASSWORD')
      const deleted = { success: true, message: 'User deleted' }
      assert.deepEqual(done(await client.deleteUser({ password })), deleted)
      assert.equal(refused(await client.getSession()).status, 401)
      const result = refused(await client.signIn.email({ email, password }))
      assert.equal(result.code, 'INVALID_EMAIL_OR_PASSWORD')

      const [bob, eve] = [await member(), await member()]
      t.advance(DAY + 1)
      for (const { client } of [bob, eve]) {
        assert.deepEqual(done(await client.deleteUser()), {
          success: true,
          message: 'Verification email sent',
        })
      }
      const links = await linksTo(bob.email, eve.email)
      const [bobs, eves] = links.map(tokenIn)
      assert.ok(bobs && eves)
      assert.deepEqual(done(await bob.client.deleteUser.callback({ query: { token: bobs } })), deleted)
      assert.deepEqual(done(await eve.client.deleteUser({ token: eves })), deleted)
      for (const { client } of [bob, eve]) assert.equal(refused(await client.getSession()).status, 401)
    })

    test(`${who}: gets status, code and message of failures`, async () => {
      const { client, email, username } = await member()
      const password = 'wrong password'
      const other = newUser()
      const short = { ...other, password: 'short' }
      const stranger = visitor().client
      const weak = { currentPassword: PASSWORD, newPassword: 'short' }
      const cases: readonly [Outcome<unknown>, number, KnownCode][] = [
        [await stranger.signIn.email({ email, password }), 401, 'INVALID_EMAIL_OR_PASSWORD'],
        [await stranger.signIn.email(other), 401, 'INVALID_EMAIL_OR_PASSWORD'],
        [await stranger.signIn.username({ username, password }), 401, 'INVALID_USERNAME_OR_PASSWORD'],
        [await stranger.signUp.email({ ...other, email: 'ada' }), 400, 'INVALID_EMAIL'],
        [await stranger.signUp.email({ ...other, email }), 409, 'USER_ALREADY_EXISTS'],
        [await stranger.signUp.email({ ...other, username }), 409, 'USERNAME_IS_ALREADY_TAKEN'],
        [await stranger.signUp.email(short), 400, 'PASSWORD_TOO_SHORT'],
        [await client.changePassword(weak), 400, 'PASSWORD_TOO_SHORT'],
      ]
      for (const [outcome, status, code] of cases) {
        assert.partialDeepStrictEqual(refused(outcome), { status, code })
      }
      assert.partialDeepStrictEqual(refused(await stranger.listSessions()), {
        status: 401,
        code: 'UNAUTHORIZED',
      })
      const empty = await stranger.signIn.email({ email, password: '' })
      assert.partialDeepStrictEqual(refused(empty), { status: 400, code: 'VALIDATION_ERROR' })
    })
  }

  test(`better-auth ${version}: identifies the visitor on a server by the forwarded cookie`, async () => {
    const ada = newUser()
    const { token } = done(await newVisitor(t.url, version, 'cookie').client.signUp.email(ada))
    const { client } = newVisitor(t.url, version, 'Bearer')
    const headers = { cookie: `${t.config.session.cookie_name}=${token}` }
    assert.equal(done(await client.getSession({ fetchOptions: { headers } }))?.user.email, ada.email)
    assert.equal(refused(await client.getSession()).status, 401)
  })

  test(`better-auth ${version}: every path of its own server was used above or is listed as not built`, async () => {
    const used = visitors[version]
      .flatMap(({ calls }) => calls)
      .flatMap((call) => /^\w+ \/api\/auth(\S+) [23]\d\d$/.exec(call)?.[1] ?? [])
      .map((path) => path.replace(/^\/reset-password\/.+/, '/reset-password/:token'))
    const unused = clientPaths(version).filter((path) => ![...used, ...SOCIAL].includes(path))
    assert.deepEqual(
      unused.filter((path) => !(path in NOT_BUILT)),
      [],
    )
    for (const path of unused)
      assert.equal((await t.anon.post(`/api/auth${path}`)).body.code, 'NOT_FOUND', path)
  })
}

test('every path listed as not built exists in one of the versions', () => {
  const paths = VERSIONS.flatMap(clientPaths)
  assert.deepEqual(
    Object.keys(NOT_BUILT).filter((path) => !paths.includes(path)),
    [],
  )
})

async function linksTo(...emails: readonly string[]): Promise<string[]> {
  const mails = await t.mails()
  return emails.map((email) => {
    const mail = mails.find((mail) => mail.toLowerCase().includes(`to: ${email}`))
    assert.ok(mail, `no mail to ${email}`)
    return linkIn(mail)
  })
}

const linkTo = async (email: string): Promise<string> => (await linksTo(email))[0] ?? ''

const tokenIn = (link: string): string => new URL(link, t.url).searchParams.get('token') ?? ''
