import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor } from '#test/harness.ts'
import { AUDIENCE, newKey, startJwtIssuer } from '#test/jwt-issuer.ts'
import { createTenants, fetchDocs } from '#test/tenants.ts'

const many = { requests: 1_000, window: 600_000 }
const acme = await startJwtIssuer()
const { t } = await createTenants(({ url, policies }) => ({
  outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  rate_limits: {
    enabled: true,
    rules: { sign_up: many, sign_in: many, default: { requests: 3, window: 600_000 } },
  },
  clients: {
    jwt: {
      url,
      enforce_api_keys: false,
      row_level_security: { ...policies, issuers: [{ issuer: acme.issuer, audience: [AUDIENCE] }] },
    },
  },
}))
const ask = (token: string) =>
  fetchDocs(actor(t.url, { 'x-service-client': 'jwt', authorization: `Bearer ${token}` }))

test('an address that has sent several wrong tokens is refused before the next one is verified; a verified one goes on', async () => {
  const known = await acme.sign({ sub: 'known' })
  assert.equal((await ask(known)).status, 200)
  const stranger = await newKey()
  const codes: string[] = []
  for (const sub of ['a', 'b', 'c', 'd'])
    codes.push((await ask(await acme.sign({ sub }, { key: stranger }))).body.code)
  assert.deepEqual(codes, ['jwt_invalid', 'jwt_invalid', 'jwt_invalid', 'too_many_requests'])
  t.advance(11_000)
  const before = acme.requests.length
  const refused = await ask(await acme.sign({ sub: 'right' }, { key: stranger }))
  assert.deepEqual([refused.status, refused.body.code], [429, 'too_many_requests'])
  assert.equal((await ask(await acme.sign({ sub: 'unknown yet' }))).status, 429)
  assert.equal(acme.requests.length, before)
  assert.equal((await ask(known)).status, 200)
})
