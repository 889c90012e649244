import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateKeyPair, SignJWT } from 'jose'
import { defaultConfig } from '#kernel/config/config.ts'
import { load } from '#test/configuration.ts'
import { verifyIdToken } from './client/id-token.ts'
import { microsoft } from './providers/microsoft.ts'
import { serverOf } from './providers/provider.ts'
import { socialProblems } from './social-providers.ts'

const SUBJECT = 'AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ'
const TENANT = '9122040d-6c67-4c5b-b112-36a304b66dad'

test('Microsoft’s issuer is the directory that the token names, and no other text', async () => {
  const { microsoft: settings } = defaultConfig({ auth: { social: { providers: { microsoft: {} } } } }).auth
    .social.providers
  assert.ok(settings)
  const shared = { type: 'oidc', issuer: 'https://login.microsoftonline.com/common/v2.0' }
  assert.deepEqual(serverOf(microsoft, settings), shared)
  const issuer = 'https://login.microsoftonline.com/{tenantid}/v2.0'
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  const verify = async (tid: string, iss: string) => {
    const token = new SignJWT({ sub: SUBJECT, tid, iss, aud: 'us', iat: 1_000, exp: 2_000 })
    const signed = await token.setProtectedHeader({ alg: 'RS256' }).sign(privateKey)
    const expected = { issuer, audiences: ['us'], nonce: undefined, keys: async () => publicKey }
    return verifyIdToken({ now: () => new Date(1_500_000) }, signed, expected)
  }
  const own = `https://login.microsoftonline.com/${TENANT}/v2.0`
  assert.equal((await verify(TENANT, own)).sub, SUBJECT)
  const other = '11111111-6c67-4c5b-b112-36a304b66dad'
  for (const [tid, iss] of [
    [other, own],
    ['../x', 'https://login.microsoftonline.com/../x/v2.0'],
    [TENANT, issuer],
  ] as const)
    await assert.rejects(verify(tid, iss), { code: 'INVALID_TOKEN' }, `${tid} ${iss}`)
})

test('settings of providers that are wrong or dangerous stop the start', () => {
  const social = (yaml: string) => () => load({ yaml: `auth: { social: { ${yaml} } }` })
  const id = 'client_id: x'
  const trusted = 'linking: { trusted_providers: [microsoft] }'
  assert.throws(
    social(`providers: { microsoft: { ${id} } }, ${trusted}`),
    /trusted_providers: must not name microsoft while/,
  )
  assert.throws(
    social(`providers: { microsoft: { ${id}, tenant: consumers } }, ${trusted}`),
    /must not name microsoft/,
  )
  const byAddress = (settings: string) =>
    social(`providers: { entra: { ${id}, ${settings} } }, linking: { trusted_providers: [entra] }`)
  for (const [tenant, host] of [
    ['common', 'microsoftonline.com'],
    ['Organizations', 'microsoftonline.us'],
    ['consumers', 'partner.microsoftonline.cn'],
  ]) {
    const url = `https://login.${host}/${tenant}`
    assert.throws(
      byAddress(`type: oidc, issuer: "${url}/v2.0"`),
      /must not name entra while auth\.social\.providers\.entra\.issuer is https:/,
    )
    const endpoints = `token_url: "${url}/token", userinfo_url: "https://graph.microsoft.com/oidc/userinfo"`
    assert.throws(
      byAddress(`type: oauth2, authorization_url: "${url}/authorize", ${endpoints}`),
      /must not name entra while auth\.social\.providers\.entra\.authorization_url is https:/,
    )
  }
  byAddress(`type: oidc, issuer: "https://login.microsoftonline.com/${TENANT}/v2.0"`)()
  byAddress('type: oidc, issuer: "https://id.example.com/common/v2.0"')()
  social(`providers: { microsoft: { ${id}, tenant: 9122040d-6c67-4c5b-b112-36a304b66dad } }, ${trusted}`)()
  assert.throws(social('providers: { google: { client_secret: x } }'), /google.client_id: is required/)
  assert.throws(social(`providers: { acme: { type: oidc, ${id} } }`), /acme.issuer: is required/)
  assert.throws(
    social(`providers: { acme: { type: oidc, ${id}, issuer: "http://acme.example" } }`),
    /issuer: needs https/,
  )
  assert.throws(social(`providers: { credential: { ${id} } }`), /provider name must be/)
  const wrong = { acme: {}, apple: { key_id: 'x' } }
  const [type, ...missing] = socialProblems(defaultConfig({ auth: { social: { providers: wrong } } }))
  assert.match(
    type ?? '',
    /^auth\.social\.providers\.acme\.type: set oidc or oauth2, since acme is not built in/,
  )
  assert.deepEqual(missing, [
    'auth.social.providers.apple.team_id: is required for apple',
    'auth.social.providers.apple.private_key: is required for apple',
  ])
})
