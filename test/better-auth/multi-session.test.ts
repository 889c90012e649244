import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import { multiSessionClient } from 'better-auth/client/plugins'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import { multiSessionClient as multiSessionClient12 } from 'better-auth-1.2/client/plugins'
import { testService } from '#test/harness.ts'
import { done, newUser, type Outcome, refused, VERSIONS, type Version } from './clients.ts'
import { createCookieFetch } from './fetches.ts'

const t = await testService({ config: { auth: { multi_session: { enabled: true } } } })

type Answer<T> = Promise<Outcome<T>>
type Known = { readonly session: { readonly token: string }; readonly user: { readonly id: string } }
/** The calls of applications. The compiler checks that the types of both versions match. */
type Calls = {
  readonly signUp: { email(body: ReturnType<typeof newUser>): Answer<{ user: { id: string } }> }
  signOut(): Answer<unknown>
  getSession(): Answer<Known | null>
  readonly multiSession: {
    listDeviceSessions(): Answer<Known[]>
    setActive(body: { sessionToken: string }): Answer<Known>
    revoke(body: { sessionToken: string }): Answer<{ status: boolean }>
  }
}

/** A client with its plugin in a browser, configured as in an application. */
function newClient(version: Version): Calls {
  const { fetch: customFetchImpl } = createCookieFetch()
  const options = { baseURL: t.url, fetchOptions: { customFetchImpl } }
  return version === '1.7.7'
    ? createAuthClient({ ...options, plugins: [multiSessionClient()] })
    : createAuthClient12({ ...options, plugins: [multiSessionClient12()] })
}

for (const version of VERSIONS)
  test(`better-auth ${version}: lists the sessions of the browser, switches between them, and ends one or all`, async () => {
    const client = newClient(version)
    const { multiSession } = client
    const whoAmI = async () => (await client.getSession()).data?.user.id
    const ids: string[] = []
    for (const _ of Array(3)) ids.push(done(await client.signUp.email(newUser())).user.id)
    const [ada = '', bob = '', cem = ''] = ids
    const listed = done(await multiSession.listDeviceSessions())
    assert.deepEqual(
      listed.map(({ user }) => user.id),
      [cem, bob, ada],
    )
    const tokenOf = (id: string) => listed.find(({ user }) => user.id === id)?.session.token ?? ''

    const active = done(await multiSession.setActive({ sessionToken: tokenOf(ada) }))
    assert.equal(active.user.id, ada)
    assert.equal(await whoAmI(), ada)
    // The list is of before, and shows the token of the session that was current then.
    done(await multiSession.setActive({ sessionToken: tokenOf(cem) }))
    assert.equal(await whoAmI(), cem)

    assert.equal(done(await multiSession.revoke({ sessionToken: tokenOf(bob) })).status, true)
    assert.equal(await whoAmI(), cem)
    const gone = refused(await multiSession.setActive({ sessionToken: tokenOf(bob) }))
    assert.deepEqual([gone.status, gone.code], [401, 'INVALID_SESSION_TOKEN'])
    done(await multiSession.revoke({ sessionToken: tokenOf(cem) }))
    assert.equal(await whoAmI(), ada)
    done(await client.signOut())
    assert.deepEqual(done(await multiSession.listDeviceSessions()), [])
    assert.equal(await whoAmI(), undefined)
  })
