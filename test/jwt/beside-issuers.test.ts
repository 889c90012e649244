import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { actor } from '#test/harness.ts'
import { AUDIENCE, startJwtIssuer } from '#test/jwt-issuer.ts'
import { createTenants, docsOf, fetchDocs, whoIs } from '#test/tenants.ts'

const other = await startJwtIssuer()
const issuers = [{ issuer: other.issuer, audience: [AUDIENCE] }]
const { t, users } = await createTenants(({ url, policies }) => ({
  outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  clients: {
    both: { url, enforce_api_keys: false, row_level_security: { ...policies, issuers } },
    foreign: {
      url,
      enforce_api_keys: false,
      row_level_security: { ...policies, issuers, own_sessions: false },
    },
  },
}))
const as = (client: string, token: string, more = {}) =>
  actor(t.url, { 'x-service-client': client, authorization: `Bearer ${token}`, ...more })
const own: string = (await users.ada.get('/api/auth/token')).body.token
const cookie = `${t.config.session.cookie_name}=${users.cem.token}`

test('a token of a session counts as its session on a client that trusts another issuer', async () => {
  assert.deepEqual(await docsOf(as('both', own)), [1, 3])
  assert.deepEqual((await whoIs(as('both', own))).claims, (await whoIs(as('both', users.ada.token))).claims)
  assert.deepEqual(await docsOf(as('both', await other.sign({ sub: 'auth0|ada' }))), [3])
  // As the session that it names, it wins over a cookie.
  assert.deepEqual(await docsOf(as('both', own, { cookie })), [1, 3])
  assert.equal(other.requests.length, 2)
})

test('the other issuer cannot sign a token that names this service, or a session of it', async () => {
  const { iss, ...claims } = decodeJwt(own)
  const named = await fetchDocs(as('both', await other.sign({ ...claims, iss })))
  assert.deepEqual([named.status, named.body.code], [401, 'invalid_session'])
  const beside = await fetchDocs(as('both', await other.sign({ ...claims, aud: AUDIENCE })))
  assert.deepEqual([beside.status, beside.body.code], [401, 'jwt_invalid'])
})

test('with own_sessions: false the token of a session is refused as the session is', async () => {
  for (const token of [own, users.ada.token]) {
    const { status, body } = await fetchDocs(as('foreign', token))
    assert.deepEqual([status, body.code], [401, 'invalid_session'])
    assert.match(body.error, /own_sessions/)
  }
})

test('after sign-out the token counts no more, whatever issuers the client trusts', async () => {
  const token: string = (await users.bea.get('/api/auth/token')).body.token
  assert.deepEqual(await docsOf(as('both', token)), [1, 3])
  await users.bea.post('/api/auth/sign-out')
  const { status, body } = await fetchDocs(as('both', token))
  assert.deepEqual([status, body.code], [401, 'invalid_session'])
})
