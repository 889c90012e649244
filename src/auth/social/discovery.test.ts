import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { testService } from '#test/harness.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import {
  authUrlOf,
  CLIENT,
  createVisitor,
  oidcSettings,
  TO_LOOPBACK,
} from '#test/identity-provider/visits.ts'
import { createConnection } from './client/connection.ts'
import { oidc } from './providers/generic.ts'

/** Members of discovery documents in place of an address. Undefined: the member is missing. */
const NO_ADDRESSES: readonly unknown[] = [
  ...[
    'javascript:alert(document.cookie)',
    'JavaScript:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,hi',
  ],
  ...['blob:https://example.com/1', 'about:blank', 'file:///etc/passwd', 'ftp://example.com/'],
  ...['/authorize', '//evil.example/authorize', 'authorize', '', ' ', 'http://[', 'https://'],
  ...[7, true, null, {}, ['https://example.com'], undefined],
]
const MEMBERS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'] as const
/** Answers in place of a document. */
const NO_DOCUMENTS = [
  '',
  '[]',
  '7',
  'null',
  '"x"',
  '{}',
  '<html>',
  '{"issuer":null}',
  '{"issuer":"https://a.example"}',
]

const idp = await startOpenidProvider()
idp.serve([{ ...CLIENT, redirectUris: [] }])
const cases = [
  ...MEMBERS.flatMap((member) => NO_ADDRESSES.map((value) => ({ member, value }))),
  ...NO_DOCUMENTS.map((text) => ({ member: undefined, value: text })),
].map((each, index) => ({ ...each, name: `case${index}`, issuer: `${idp.issuer}/case${index}` }))
const t = await testService({
  config: {
    outbound: TO_LOOPBACK,
    auth: {
      social: {
        providers: Object.fromEntries(cases.map(({ name, issuer }) => [name, oidcSettings(idp, { issuer })])),
      },
    },
  },
})
const AUTH = '/api/auth'
idp.intercept = (request, response) => {
  const found = cases.find(({ name }) => request.url === `/${name}/.well-known/openid-configuration`)
  if (found === undefined) return false
  const { issuer, member, value } = found
  const right = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${idp.issuer}/jwks`,
  }
  response.setHeader('content-type', 'application/json')
  response.end(member === undefined ? value : JSON.stringify({ ...right, [member]: value }))
  return true
}

const about = (member: (typeof MEMBERS)[number] | undefined) => cases.filter((each) => each.member === member)
const states = () => t.service.kernel.db.selectFrom('verification').select('purpose').execute()
const logged = (name: string) =>
  t.log.some((line) => line.includes('"provider_failed"') && line.includes(`"provider":"${name}"`))

test('a document that is none, or whose authorization endpoint is no web address, is a failure of the provider', async () => {
  const ada = await t.signUp('Ada')
  for (const { name: provider, value } of [...about(undefined), ...about('authorization_endpoint')])
    for (const path of ['sign-in/social', 'link-social']) {
      const answer = await ada.post(`${AUTH}/${path}`, { provider })
      assert.deepEqual([answer.status, answer.body.code], [503, 'PROVIDER_UNAVAILABLE'], `${path} ${value}`)
      assert.ok(logged(provider), String(value))
    }
  assert.deepEqual(await states(), [])
})

test('a token endpoint that is no web address ends the visit with an error', async () => {
  for (const { name: provider, value } of about('token_endpoint')) {
    const visitor = createVisitor(t)
    const state = new URL(await visitor.begin({ provider })).searchParams.get('state') ?? ''
    const target = await visitor.arrive(`${authUrlOf(t)}/callback/${provider}?code=x&state=${state}`)
    assert.match(target, /^\/failed\?error=(provider_unavailable|invalid_code)$/, String(value))
    assert.ok(logged(provider), String(value))
  }
})

test('keys and descriptions of users at no web address are failures of the provider', async () => {
  const signIn = async ({ name: provider, issuer }: (typeof cases)[number]) => {
    const token = await idp.idToken(CLIENT.id, { iss: issuer, sub: provider })
    return t.anon.post(`${AUTH}/sign-in/social`, { provider, idToken: { token, accessToken: 'x' } })
  }
  for (const one of about('jwks_uri')) {
    const { status, body } = await signIn(one)
    assert.deepEqual([status, body.code], [503, 'PROVIDER_UNAVAILABLE'], String(one.value))
    assert.ok(logged(one.name), String(one.value))
  }
  for (const one of about('userinfo_endpoint')) {
    const { status, body, headers } = await signIn(one)
    assert.ok(status >= 400 && (status < 500 || status === 503), `${status} ${body.code} ${one.value}`)
    assert.equal(headers.get('set-auth-token'), null)
  }
})

test('an authorization endpoint by http is refused unless outbound.allow_http', async () => {
  const settings = oidcSettings(idp, { issuer: 'https://issuer.example' })
  const { providers } = defaultConfig({ auth: { social: { providers: { settings } } } }).auth.social
  const send = async () => ({
    ...{ status: 200, headers: { 'content-type': 'application/json' }, isWhole: true },
    body: Buffer.from(
      JSON.stringify({ issuer: settings.issuer, authorization_endpoint: 'http://issuer.example/authorize' }),
    ),
  })
  for (const allow_http of [true, false]) {
    const { now, log } = t.service.kernel
    const kernel = { config: defaultConfig({ outbound: { allow_http } }), now, log }
    assert.ok(providers.settings)
    const connect = createConnection(kernel, {
      name: 'plain',
      provider: oidc,
      settings: providers.settings,
      send,
    })
    if (allow_http) await connect()
    else await assert.rejects(connect(), { code: 'PROVIDER_UNAVAILABLE' })
  }
})
