import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getEndpoints } from 'better-auth/api'
import { createAuthClient } from 'better-auth/client'
import { jwtClient } from 'better-auth/client/plugins'
import { jwt } from 'better-auth/plugins'
import { createLocalJWKSet, createRemoteJWKSet, jwtVerify } from 'jose'
import { testService } from '#test/harness.ts'
import { CARRIERS, done, newUser, refused } from './clients.ts'
import { type Endpoint, isForClients } from './endpoints.ts'
import { createCookieFetch, createPlainFetch } from './fetches.ts'

const t = await testService({ config: { auth: { jwt: { header: true } } } })
const issuer = t.service.kernel.publicUrl()
const expected = { issuer, audience: issuer }

/** The client's types allow an answer without data. */
function some<T>(outcome: { data: T; error: null } | { data: null; error: unknown }): NonNullable<T> {
  assert.equal(outcome.error, null)
  assert.ok(outcome.data)
  return outcome.data
}

for (const by of CARRIERS) {
  const { fetch: customFetchImpl, calls } = by === 'cookie' ? createCookieFetch() : createPlainFetch()
  let token = ''
  const client = createAuthClient({
    baseURL: t.url,
    plugins: [jwtClient()],
    fetchOptions: {
      customFetchImpl,
      ...(by === 'Bearer' && {
        auth: { type: 'Bearer' as const, token: () => token },
        onResponse: ({ response }) => {
          token = response.headers.get('set-auth-token') ?? token
        },
      }),
    },
  })

  test(`better-auth 1.7.7 by ${by}: the plugin jwt gets a token, the keys, and the header of get-session`, async () => {
    assert.equal(refused(await client.token()).status, 401)
    const { user } = some(await client.signUp.email(newUser()))
    const answer = some(await client.token())
    const keys = some(await client.jwks())
    const { payload } = await jwtVerify(answer.token, createLocalJWKSet(keys), expected)
    assert.equal(payload.sub, user.id)

    // As its documentation says.
    let sent: string | null = null
    const onSuccess = ({ response }: { response: Response }) => {
      sent = response.headers.get('set-auth-jwt')
    }
    done(await client.getSession({ fetchOptions: { onSuccess } }))
    assert.equal(sent, answer.token)
    const remote = createRemoteJWKSet(new URL('/api/auth/jwks', t.url))
    assert.equal((await jwtVerify(answer.token, remote, expected)).payload.sub, user.id)
    done(await client.signOut())
    assert.equal(refused(await client.token()).status, 401)
  })

  test(`better-auth 1.7.7 by ${by}: every endpoint of the plugin is called`, () => {
    // The context is used only when an endpoint runs.
    const { api } = getEndpoints(new Promise<never>(() => {}), { plugins: [jwt()] })
    const { api: without } = getEndpoints(new Promise<never>(() => {}), { plugins: [] })
    const own = Object.entries(api as Readonly<Record<string, Endpoint>>)
      .filter(([name, endpoint]) => !(name in without) && isForClients(endpoint))
      .flatMap(([, { path = '' }]) => (path === '' ? [] : [`GET /api/auth${path} 200`]))
    assert.deepEqual(own.toSorted(), ['GET /api/auth/jwks 200', 'GET /api/auth/token 200'])
    for (const call of own) assert.ok(calls.includes(call), call)
  })
}
