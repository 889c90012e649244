import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passkeyClient } from '@better-auth/passkey/client'
import { createAuthClient } from 'better-auth/client'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import { passkeyClient as passkeyClient12 } from 'better-auth-1.2/client/plugins'
import { createAuthenticator } from '#test/authenticator.ts'
import { testService } from '#test/harness.ts'
import { installCredentials } from './browser-credentials.ts'
import { done, newUser, type Outcome, refused, VERSIONS, type Version } from './clients.ts'
import { createCookieFetch } from './fetches.ts'

const t = await testService()
let authenticator = createAuthenticator()
installCredentials(t.service.kernel.publicUrl(), () => authenticator)

type Answer<T> = Promise<Outcome<T>>
type Passkey = {
  readonly id: string
  readonly name?: string | null | undefined
  readonly credentialID: string
  readonly createdAt: Date
}
/** The calls of applications. The compiler checks that the types of both versions match. */
type Calls = {
  readonly signUp: { email(body: ReturnType<typeof newUser>): Answer<{ user: { id: string } }> }
  signOut(): Answer<unknown>
  getSession(): Answer<{ user: { id: string } } | null>
  readonly passkey: {
    listUserPasskeys(): Answer<Passkey[]>
    updatePasskey(body: { id: string; name: string }): Answer<{ passkey: Passkey }>
    deletePasskey(body: { id: string }): Answer<unknown>
  }
}
/** The ceremonies. The client of 1.2 answers them only when they fail. */
type Ceremonies = {
  addPasskey(asked: { name: string }): Promise<Failable>
  signInWithPasskey(): Promise<Failable>
}
// biome-ignore lint/suspicious/noConfusingVoidType: as in the clients' types
type Failable = { readonly error?: unknown; readonly data?: unknown } | null | undefined | void

/** A client with its passkey plugin, configured as in an application. */
function newClient(version: Version): Calls & Ceremonies & { readonly calls: readonly string[] } {
  const { fetch: customFetchImpl, calls } = createCookieFetch()
  const options = { baseURL: t.url, fetchOptions: { customFetchImpl } }
  if (version === '1.7.7') {
    const client = createAuthClient({ ...options, plugins: [passkeyClient()] })
    const { signUp, signOut, getSession, passkey, signIn } = client
    const { addPasskey } = passkey
    return { signUp, signOut, getSession, passkey, addPasskey, signInWithPasskey: signIn.passkey, calls }
  }
  const client = createAuthClient12({ ...options, plugins: [passkeyClient12()] })
  const { signUp, signOut, getSession, passkey, signIn } = client
  const { addPasskey } = passkey
  return { signUp, signOut, getSession, passkey, addPasskey, signInWithPasskey: signIn.passkey, calls }
}

const succeeded = (outcome: Failable): void => assert.equal(outcome?.error ?? null, null)

for (const version of VERSIONS) {
  test(`better-auth ${version}: adds a passkey, signs in with it, renames and deletes it`, async () => {
    authenticator = createAuthenticator()
    const { addPasskey, signInWithPasskey, ...client } = newClient(version)
    const { user } = done(await client.signUp.email(newUser()))
    succeeded(await addPasskey({ name: 'Laptop' }))
    done(await client.signOut())
    assert.equal(refused(await client.getSession()).status, 401)

    succeeded(await signInWithPasskey())
    assert.equal(done(await client.getSession())?.user.id, user.id)
    const [passkey, ...more] = done(await client.passkey.listUserPasskeys())
    assert.ok(passkey?.createdAt instanceof Date)
    assert.deepEqual(
      [passkey.name, passkey.credentialID, more],
      ['Laptop', authenticator.credentials[0]?.id, []],
    )
    const renamed = done(await client.passkey.updatePasskey({ id: passkey.id, name: 'Old laptop' }))
    assert.equal(renamed.passkey.name, 'Old laptop')
    done(await client.passkey.deletePasskey({ id: passkey.id }))
    assert.deepEqual(done(await client.passkey.listUserPasskeys()), [])

    done(await client.signOut())
    const outcome = await signInWithPasskey()
    assert.partialDeepStrictEqual(outcome, { data: null, error: { status: 401, code: 'PASSKEY_NOT_FOUND' } })
    assert.equal(refused(await client.getSession()).status, 401)
    assert.ok(client.calls.includes('POST /api/auth/passkey/verify-registration 200'))
  })
}
