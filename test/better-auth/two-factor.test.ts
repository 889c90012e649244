import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import { twoFactorClient } from 'better-auth/client/plugins'
import { type BetterAuthClientPlugin, createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import { twoFactorClient as twoFactorClient12 } from 'better-auth-1.2/client/plugins'
import { PASSWORD, testClock, testService } from '#test/harness.ts'
import { codeOf, mailedCode, secretIn } from '#test/second-factor.ts'
import { done, newUser, type Outcome, refused, VERSIONS, type Version } from './clients.ts'
import { createCookieFetch } from './fetches.ts'

const t = await testService({ clock: testClock({ isStopped: true }) })

type Answer<T> = Promise<Outcome<T>>
type User = { readonly id: string }
/** The calls of applications. The compiler checks that the types of both versions match. */
type Calls = {
  readonly signUp: { email(body: ReturnType<typeof newUser>): Answer<{ user: User }> }
  readonly signIn: { email(body: { email: string; password: string }): Answer<object> }
  signOut(): Answer<unknown>
  getSession(): Answer<{ user: User } | null>
  readonly twoFactor: {
    enable(body: { password: string; issuer?: string }): Answer<object>
    disable(body: { password: string }): Answer<{ status: boolean }>
    getTotpUri(body: { password: string }): Answer<{ totpURI: string }>
    verifyTotp(body: { code: string; trustDevice?: boolean }): Answer<object>
    sendOtp(): Answer<{ status: boolean }>
    verifyOtp(body: { code: string }): Answer<object>
    verifyBackupCode(body: { code: string; disableSession?: boolean }): Answer<object>
    generateBackupCodes(body: { password: string }): Answer<{ backupCodes: string[] }>
  }
}

/** A client with its two-factor plugin, configured as in an application. `redirects`: calls of the application's page. */
function newClient(version: Version): Calls & { readonly redirects: () => number } {
  const { fetch: customFetchImpl } = createCookieFetch()
  const options = { baseURL: t.url, fetchOptions: { customFetchImpl } }
  let redirects = 0
  const plugin = { onTwoFactorRedirect: () => void redirects++ }
  const client: Calls =
    version === '1.7.7'
      ? createAuthClient({ ...options, plugins: [twoFactorClient(plugin)] })
      : clientOf12(options, plugin)
  const { signUp, signIn, signOut, getSession, twoFactor } = client
  return { signUp, signIn, signOut, getSession, twoFactor, redirects: () => redirects }
}

/** The plugin's type of 1.2 does not fit its client's type: an endpoint of its server has a GET with a body. */
function clientOf12(options: object, plugin: Parameters<typeof twoFactorClient12>[0]): Calls {
  const plugins = [twoFactorClient12(plugin) as unknown as BetterAuthClientPlugin]
  return createAuthClient12({ ...options, plugins }) as unknown as Calls
}

for (const version of VERSIONS)
  test(`better-auth ${version}: enrols, signs in by each method, trusts a device and recovers by a backup code`, async () => {
    const client = newClient(version)
    const { twoFactor, redirects } = client
    const asked = newUser()
    const { user } = done(await client.signUp.email(asked))
    const whoAmI = async () => (await client.getSession()).data?.user.id
    let redirected = 0
    /** Signs in with the password, which asks for the second factor. */
    const begin = async () => {
      done(await client.signOut())
      const { email, password } = asked
      const pending = done(await client.signIn.email({ email, password }))
      assert.partialDeepStrictEqual(pending, { twoFactorRedirect: true, twoFactorMethods: ['totp', 'otp'] })
      assert.deepEqual([redirects(), await whoAmI()], [++redirected, undefined])
    }

    const begun = done(await twoFactor.enable({ password: PASSWORD, issuer: 'Library' })) as {
      readonly totpURI: string // the types of 1.7 have a union
      readonly backupCodes: readonly string[]
    }
    const secret = secretIn(begun.totpURI)
    done(await twoFactor.verifyTotp({ code: codeOf(t, secret) }))
    t.advance(30_000)
    assert.equal(await whoAmI(), user.id, 'the session goes on with its new token')
    assert.equal(secretIn(done(await twoFactor.getTotpUri({ password: PASSWORD })).totpURI), secret)

    await begin()
    const wrong = refused(await twoFactor.verifyTotp({ code: '12345' }))
    assert.deepEqual([wrong.status, wrong.code], [401, 'INVALID_CODE'])
    done(await twoFactor.verifyTotp({ code: codeOf(t, secret) }))
    assert.equal(await whoAmI(), user.id)

    await begin()
    await t.mails()
    done(await twoFactor.sendOtp())
    done(await twoFactor.verifyOtp({ code: mailedCode(await t.mails()) }))
    assert.equal(await whoAmI(), user.id)

    await begin()
    done(await twoFactor.verifyBackupCode({ code: begun.backupCodes[0] ?? '' }))
    assert.equal(await whoAmI(), user.id)
    const renewed = done(await twoFactor.generateBackupCodes({ password: PASSWORD })).backupCodes
    await begin()
    const old = refused(await twoFactor.verifyBackupCode({ code: begun.backupCodes[1] ?? '' }))
    assert.deepEqual([old.status, old.code], [401, 'INVALID_BACKUP_CODE'])
    done(await twoFactor.verifyBackupCode({ code: renewed[0] ?? '' }))

    await begin()
    t.advance(30_000)
    done(await twoFactor.verifyTotp({ code: codeOf(t, secret), trustDevice: true }))
    done(await client.signOut())
    done(await client.signIn.email({ email: asked.email, password: asked.password }))
    assert.deepEqual([redirects(), await whoAmI()], [redirected, user.id], 'the device is trusted')

    // A client that knows nothing of details.accepts signs in again, and is asked for the code, which a trusted device is not.
    const demanded = refused(await twoFactor.disable({ password: PASSWORD }))
    assert.deepEqual([demanded.status, demanded.code], [403, 'SESSION_NOT_FRESH'])
    await begin()
    t.advance(30_000)
    done(await twoFactor.verifyTotp({ code: codeOf(t, secret) }))
    done(await twoFactor.disable({ password: PASSWORD }))
    done(await client.signOut())
    done(await client.signIn.email({ email: asked.email, password: asked.password }))
    assert.deepEqual([redirects(), await whoAmI()], [redirected, user.id])
  })
