import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import { deviceAuthorizationClient } from 'better-auth/client/plugins'
import { PASSWORD, testClock, testService } from '#test/harness.ts'
import { CARRIERS, newUser } from './clients.ts'
import { createCookieFetch, createPlainFetch } from './fetches.ts'

const t = await testService({
  clock: testClock({ isStopped: true }),
  config: { auth: { device: { clients: { tv: { name: 'Living room', scopes: ['films'] } } } } },
})
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code'
const SECOND = 1_000

type Carrier = (typeof CARRIERS)[number]

/** A client with its plugin, configured as in an application. The client of 1.2 has no such plugin. */
function newClient(by: Carrier | 'nothing') {
  const { fetch: customFetchImpl } = by === 'cookie' ? createCookieFetch() : createPlainFetch()
  let token = ''
  return createAuthClient({
    baseURL: t.url,
    plugins: [deviceAuthorizationClient()],
    fetchOptions: {
      customFetchImpl,
      ...(by === 'Bearer' && {
        auth: { type: 'Bearer', token: () => token },
        onResponse: ({ response }: { response: Response }) => {
          token = response.headers.get('set-auth-token') ?? token
        },
      }),
    },
  })
}

type Outcome<T> = { readonly data: T | null; readonly error: object | null }

function done<T>({ data, error }: Outcome<T>): T {
  assert.equal(error, null)
  assert.ok(data)
  return data
}

/** Status, and the members by which the client's users tell failures apart. */
function refused({ data, error }: Outcome<unknown>): readonly unknown[] {
  assert.equal(data, null)
  const { status, error: word, error_description: text } = Object(error)
  assert.equal(typeof text, 'string')
  return [status, word]
}

for (const by of CARRIERS)
  test(`better-auth 1.7.7: a device signs in by the approval of a user, by ${by}`, async () => {
    const [device, user, other] = [newClient('nothing'), newClient(by), newClient(by)]
    const ada = newUser()
    const { user: account } = done(await user.signUp.email(ada))
    done(await other.signUp.email(newUser()))

    const codes = done(await device.device.code({ client_id: 'tv', scope: 'everything' }))
    assert.deepEqual([codes.expires_in, codes.interval], [600, 5])
    assert.ok(codes.verification_uri_complete.includes(codes.user_code))
    const poll = () =>
      device.device.token({ grant_type: GRANT_TYPE, device_code: codes.device_code, client_id: 'tv' })
    assert.deepEqual(refused(await poll()), [400, 'authorization_pending'])
    assert.deepEqual(refused(await poll()), [400, 'slow_down'])

    // The page of the application. Looking binds nobody, so another user may look before.
    const query = { user_code: codes.user_code }
    done(await other.device({ query }))
    const shown = done(await user.device({ query }))
    assert.partialDeepStrictEqual(shown, { status: 'pending', client_id: 'tv', scope: 'films' })
    assert.equal(done(await device.device({ query })).client_id, undefined)
    assert.deepEqual(refused(await device.device.approve({ userCode: codes.user_code })), [
      401,
      'unauthorized',
    ])
    assert.deepEqual(done(await user.device.approve({ userCode: codes.user_code })), { success: true })
    assert.equal(done(await user.device({ query })).status, 'approved')
    const late = await other.device.deny({ userCode: codes.user_code })
    assert.deepEqual(refused(late), [400, 'invalid_request'])

    t.advance(10 * SECOND)
    const { access_token, token_type, scope } = done(await poll())
    assert.deepEqual([token_type, scope], ['Bearer', 'films'])
    const headers = { Authorization: `Bearer ${access_token}` }
    const session = done(await device.getSession({ fetchOptions: { headers } }))
    assert.equal(session.user.id, account.id)
    assert.equal((await device.getSession()).data, null, 'no cookie signs a browser in')
    t.advance(10 * SECOND)
    assert.deepEqual(refused(await poll()), [400, 'invalid_grant'])
    done(await user.signOut())
    assert.equal(done(await device.getSession({ fetchOptions: { headers } })).user.id, account.id)
  })

for (const by of CARRIERS)
  test(`better-auth 1.7.7: a refused or late device, and a stale session, are told so, by ${by}`, async () => {
    const [device, user] = [newClient('nothing'), newClient(by)]
    const ada = newUser()
    done(await user.signUp.email(ada))
    assert.deepEqual(refused(await device.device.code({ client_id: 'other' })), [400, 'invalid_client'])
    const codes = done(await device.device.code({ client_id: 'tv' }))
    const token = ({ device_code }: { device_code: string }) =>
      device.device.token({ grant_type: GRANT_TYPE, device_code, client_id: 'tv' })
    done(await user.device.deny({ userCode: codes.user_code }))
    assert.deepEqual(refused(await token(codes)), [400, 'access_denied'])

    t.advance(86_400 * SECOND + 1)
    const fresh = done(await device.device.code({ client_id: 'tv' }))
    const approve = () => user.device.approve({ userCode: fresh.user_code })
    assert.deepEqual(refused(await approve()), [403, 'session_not_fresh'])
    done(await user.signIn.email({ email: ada.email, password: PASSWORD }))
    done(await approve())
    t.advance(600 * SECOND)
    assert.deepEqual(refused(await token(fresh)), [400, 'expired_token'])
    assert.deepEqual(refused(await token({ device_code: 'unknown' })), [400, 'invalid_grant'])
    const query = { user_code: fresh.user_code }
    assert.deepEqual(refused(await user.device({ query })), [400, 'expired_token'])
  })
