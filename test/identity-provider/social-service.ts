import { insertUser, type User } from '#identity/users.ts'
import { uuidv7 } from '#kernel/random.ts'
import { type Options, testClock, testService } from '#test/harness.ts'
import { startOpenidProvider } from './openid-provider.ts'
import { authUrlOf, CLIENT, oidcSettings, register, TO_LOOPBACK } from './visits.ts'

type AuthOverrides = NonNullable<NonNullable<Options['config']>['auth']>

/** A service with the providers `acme` and `other`, which are one real OpenID provider, and views of its tables. */
export async function startSocialService(auth: AuthOverrides = {}) {
  const clock = testClock()
  const idp = await startOpenidProvider()
  const providers = { acme: oidcSettings(idp), other: oidcSettings(idp) }
  const t = await testService({
    clock,
    config: { outbound: TO_LOOPBACK, auth: { ...auth, social: { providers } } },
  })
  register(t, idp, ['acme', 'other'])
  const { kernel } = t.service
  const { db } = kernel
  return {
    ...{ clock, idp, t, kernel, db },
    /** The answer to a callback that does not belong to a visit of this browser. */
    mismatch: `${authUrlOf(t)}/error?error=state_mismatch`,
    accountsOf: (accountId: string) =>
      db.selectFrom('account').selectAll().where('accountId', '=', accountId).execute(),
    sessionsOf: (email: string) =>
      db
        .selectFrom('session as s')
        .innerJoin('user as u', 'u.id', 's.userId')
        .where('u.email', '=', email)
        .select('s.id')
        .execute(),
    /** A user without a password. */
    localUser: (email: string, emailVerified: boolean): Promise<User> => {
      const [id, createdAt] = [uuidv7(kernel.now(), kernel.random), kernel.now()]
      const facts = { name: 'Local', image: null, username: null, displayUsername: null }
      return insertUser(db, { ...facts, id, email, emailVerified, createdAt })
    },
    /** An ID token, right in everything but the changes. */
    idToken: (changes: Record<string, unknown> = {}, key = idp.signingKey()): Promise<string> => {
      const seconds = Math.floor(kernel.now().getTime() / 1_000)
      return idp.idToken(CLIENT.id, { iat: seconds, exp: seconds + 300, ...changes }, key)
    },
  }
}
