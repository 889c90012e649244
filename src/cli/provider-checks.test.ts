import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { providerFindings } from './provider-checks.ts'

const openid = await startOpenidProvider()
openid.serve([])
const LOOPBACK = { allow_http: true, allow_networks: ['127.0.0.0/8'] }

async function findings(providers: object, outbound: object = LOOPBACK) {
  const config = defaultConfig({
    server: { public_url: 'https://id.example.com' },
    auth: { social: { providers } },
    outbound,
  })
  const found = await providerFindings(config)
  return found.map(({ subject, ok, says }) => `${subject} ${ok ? 'ok' : 'BAD'}: ${says}`)
}

test('the doctor names the redirect URI of each provider, and whether its issuer answers', async () => {
  const client_id = 'gatehouse'
  const register = (name: string) =>
    `register https://id.example.com/api/auth/callback/${name} as redirect URI there`
  const providers = {
    acme: { type: 'oidc', issuer: openid.issuer, client_id },
    github: { client_id },
    absent: { type: 'oidc', issuer: 'http://127.0.0.1:1', client_id },
    other: { type: 'oidc', issuer: `${openid.issuer}/other`, client_id },
  }
  const [acme, github, absent, other] = await findings(providers)
  assert.equal(
    acme,
    `provider acme ok: the endpoints of the issuer ${openid.issuer} were found; ${register('acme')}`,
  )
  assert.match(github ?? '', /^provider github ok: .* only a sign-in shows/)
  assert.ok(github?.endsWith(register('github')))
  assert.match(
    absent ?? '',
    /^provider absent BAD: the endpoints of the issuer http:\/\/127.0.0.1:1 \(auth.social.providers.absent.issuer\) .*ECONNREFUSED/,
  )
  assert.ok(absent?.endsWith(register('absent')))
  assert.match(other ?? '', /^provider other BAD: .*were not found: ./)
})

test('the doctor says that the rules of outbound requests forbid an issuer', async () => {
  const providers = { acme: { type: 'oidc', issuer: openid.issuer, client_id: 'gatehouse' } }
  const [found] = await findings(providers, { allow_http: true })
  assert.match(found ?? '', /BAD: .*private network \(outbound.allow_networks opens exceptions\)/)
})

test('the doctor says nothing about providers when none is configured', async () => {
  assert.deepEqual(await findings({}), [])
})
