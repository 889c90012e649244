import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import { oneTimeTokenClient } from 'better-auth/client/plugins'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import { oneTimeTokenClient as oneTimeTokenClient12 } from 'better-auth-1.2/client/plugins'
import { testService } from '#test/harness.ts'
import {
  bearer,
  CARRIERS,
  type Carrier,
  done,
  newUser,
  type Outcome,
  refused,
  VERSIONS,
  type Version,
} from './clients.ts'
import { createCookieFetch, createPlainFetch } from './fetches.ts'

const t = await testService({ config: { auth: { one_time_token: { enabled: true } } } })

type Answer<T> = Promise<Outcome<T>>
type Known = {
  readonly session: { readonly id: string; readonly token: string }
  readonly user: { readonly id: string }
}
/** The calls of applications. The compiler checks that the types of both versions match. */
type Calls = {
  readonly signUp: { email(body: ReturnType<typeof newUser>): Answer<{ user: { id: string } }> }
  signOut(): Answer<unknown>
  getSession(): Answer<Known | null>
  readonly oneTimeToken: {
    generate(): Answer<{ token: string }>
    verify(body: { token: string }): Answer<Known>
  }
}

/** A client with its plugin, configured as in an application. */
function newClient(version: Version, by: Carrier): Calls {
  const { fetch: customFetchImpl } = by === 'cookie' ? createCookieFetch() : createPlainFetch()
  const options = {
    baseURL: t.url,
    fetchOptions: { customFetchImpl, ...(by === 'Bearer' && bearer()) },
  }
  return version === '1.7.7'
    ? createAuthClient({ ...options, plugins: [oneTimeTokenClient()] })
    : createAuthClient12({ ...options, plugins: [oneTimeTokenClient12()] })
}

for (const version of VERSIONS)
  for (const by of CARRIERS)
    test(`better-auth ${version} by ${by}: a session begins another one in a second app, which ends with it`, async () => {
      const [page, app] = [newClient(version, by), newClient(version, by)]
      const { user } = done(await page.signUp.email(newUser()))
      const { token } = done(await page.oneTimeToken.generate())
      const begun = done(await app.oneTimeToken.verify({ token }))
      assert.equal(begun.user.id, user.id)
      const known = done(await app.getSession())
      assert.deepEqual([known?.user.id, known?.session.id], [user.id, begun.session.id])
      assert.notEqual(done(await page.getSession())?.session.id, begun.session.id)

      const again = refused(await newClient(version, by).oneTimeToken.verify({ token }))
      assert.deepEqual([again.status, again.code], [400, 'INVALID_TOKEN'])
      done(await page.signOut())
      assert.equal(refused(await app.getSession()).status, 401)
      assert.equal(refused(await page.oneTimeToken.generate()).status, 401)
    })
