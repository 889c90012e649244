import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exportPKCS8, generateKeyPair, jwtVerify } from 'jose'
import { testService } from '#test/harness.ts'
import { startOauthServer } from '#test/identity-provider/oauth-server.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import {
  authUrlOf,
  CLIENT,
  createVisitor,
  oidcSettings,
  person,
  register,
  TO_LOOPBACK,
} from '#test/identity-provider/visits.ts'

const oauth = await startOauthServer()
const idp = await startOpenidProvider()
const appleKeys = await generateKeyPair('ES256', { extractable: true })
const endpoints = {
  authorization_url: `${oauth.url}/authorize`,
  token_url: `${oauth.url}/token`,
  userinfo_url: `${oauth.url}/user`,
}
const client = { client_id: CLIENT.id, client_secret: CLIENT.secret }
const apple = { client_id: CLIENT.id, team_id: 'TEAM', key_id: 'KEY' }
const t = await testService({
  config: {
    outbound: TO_LOOPBACK,
    auth: {
      social: {
        providers: {
          github: { ...client, ...endpoints },
          forge: {
            ...{ ...client, ...endpoints, type: 'oauth2', scopes: ['read'] },
            claims: { id: 'account.uuid', email: 'mail', email_verified: 'confirmed', name: 'title' },
          },
          apple: { ...apple, issuer: idp.issuer, private_key: await exportPKCS8(appleKeys.privateKey) },
          // Its discovery document names addresses that the operator has not allowed.
          inward: oidcSettings(idp, { issuer: `${idp.issuer}/inward` }),
        },
        linking: { allow_different_emails: true },
      },
    },
  },
})
register(t, idp, ['apple'])
const { kernel } = t.service
const AUTH = authUrlOf(t)
const accountsOf = (accountId: string) =>
  kernel.db.selectFrom('account').selectAll().where('accountId', '=', accountId).execute()

test('GitHub: the address is the primary one of a second call, and counts as verified only if that call says so', async () => {
  oauth.iss = 'https://github.com/login/oauth'
  oauth.user = {
    id: 583_231,
    login: 'octocat',
    name: null,
    email: 'public@example.com',
    avatar_url: 'https://a.example/1',
  }
  const listed = (email: string, verified: boolean) => [
    { email: 'other@example.com', primary: false, verified: true, visibility: null },
    { email, primary: true, verified, visibility: 'private' },
  ]
  oauth.emails = listed('octocat@example.com', true)
  const visitor = createVisitor(t)
  const url = await visitor.begin({ provider: 'github' })
  assert.equal(new URL(url).searchParams.get('scope'), 'user:email read:user')
  assert.equal(new URL(url).searchParams.get('nonce'), null)
  assert.equal(await visitor.arrive(await visitor.visit(url)), '/app')
  assert.equal(await visitor.whoAmI(), 'octocat@example.com')
  const [account] = await accountsOf('583231')
  assert.deepEqual([account?.providerId, account?.scopes], ['github', ['user:email', 'read:user']])
  const { name, image } = await kernel.db.selectFrom('user').selectAll().executeTakeFirstOrThrow()
  assert.deepEqual([name, image], ['octocat', 'https://a.example/1'])

  oauth.user = { id: 2, login: 'mallory', email: 'octocat@example.com' }
  oauth.emails = listed('octocat@example.com', false)
  assert.equal(await createVisitor(t).signIn({ provider: 'github' }), '/failed?error=account_not_linked')
  assert.deepEqual(await accountsOf('2'), [])
})

test('GitHub names itself in the answer, and the answer of another issuer is refused', async () => {
  oauth.iss = 'https://evil.example'
  const before = oauth.requests.filter((path) => path === '/token').length
  assert.equal(await createVisitor(t).signIn({ provider: 'github' }), '/failed?error=invalid_code')
  assert.equal(oauth.requests.filter((path) => path === '/token').length, before)
  oauth.iss = undefined
})

test('an OAuth 2 server is described by its settings: endpoints, scopes and members of its answer', async () => {
  oauth.user = {
    account: { uuid: 'u-1' },
    mail: 'Forge@Example.com',
    confirmed: true,
    title: 'A \u202eforger',
  }
  const visitor = createVisitor(t)
  assert.equal(await visitor.signIn({ provider: 'forge' }), '/app')
  assert.equal(await visitor.whoAmI(), 'forge@example.com')
  const user = await kernel.db
    .selectFrom('user')
    .selectAll()
    .where('email', '=', 'forge@example.com')
    .executeTakeFirst()
  assert.deepEqual([user?.emailVerified, user?.name], [true, 'forge'], 'a name that is no name is left out')
})

test('an OAuth 2 server without the id of the account, or with a failure of its token endpoint, signs in nobody', async () => {
  for (const user of [
    {},
    { account: { uuid: '' } },
    { account: { uuid: 'a\u0000b' } },
    { account: { uuid: {} } },
  ]) {
    oauth.user = { ...user, mail: 'x@example.com' }
    assert.equal(
      await createVisitor(t).signIn({ provider: 'forge' }),
      '/failed?error=unable_to_get_user_info',
    )
  }
  const visitor = createVisitor(t)
  const callback = new URL(await visitor.visit(await visitor.begin({ provider: 'forge' })))
  callback.searchParams.set('code', 'invented')
  assert.equal(await visitor.arrive(callback.href), '/failed?error=invalid_code')
  const refused = await t.anon.post('/api/auth/sign-in/social', {
    provider: 'forge',
    idToken: { token: 'x' },
  })
  assert.deepEqual([refused.status, refused.body.code], [400, 'ID_TOKEN_NOT_SUPPORTED'])
})

test('Apple: the form of another site leads to the GET with the cookies; the secret is signed, and the name is in the form', async () => {
  idp.visitor = person('Apple')
  const secrets: string[] = []
  idp.intercept = (request) => {
    if (request.url !== '/token') return false
    request.on('data', (chunk) => secrets.push(new URLSearchParams(String(chunk)).get('client_secret') ?? ''))
    return false
  }
  const visitor = createVisitor(t)
  const url = new URL(await visitor.begin({ provider: 'apple' }))
  assert.equal(url.searchParams.get('response_mode'), 'form_post')
  // Real answers by a form need a script in the browser, so the code comes in the query here.
  url.searchParams.delete('response_mode')
  const answer = new URL(await visitor.visit(url.href)).searchParams
  answer.set(
    'user',
    JSON.stringify({ name: { firstName: 'Ada', lastName: 'Lovelace' }, email: 'forged@example.com' }),
  )
  const posted = await fetch(`${AUTH}/callback/apple`, {
    method: 'POST',
    headers: { origin: 'https://appleid.apple.com' },
    body: answer,
    redirect: 'manual',
  })
  assert.deepEqual([posted.status, posted.headers.getSetCookie()], [303, []])
  const location = new URL(posted.headers.get('location') ?? '', AUTH)
  assert.equal(`${location.origin}${location.pathname}`, `${AUTH}/callback/apple`)
  assert.equal(
    await visitor.arrive(location.href),
    '/failed?error=invalid_code',
    'the test’s provider takes no signed secret',
  )
  const { payload, protectedHeader } = await jwtVerify(secrets[0] ?? '', appleKeys.publicKey)
  assert.deepEqual(protectedHeader, { alg: 'ES256', kid: 'KEY' })
  const { iss, sub, aud } = payload
  assert.deepEqual({ iss, sub, aud }, { iss: 'TEAM', sub: CLIENT.id, aud: 'https://appleid.apple.com' })
  assert.ok((payload.exp ?? 0) - (payload.iat ?? 0) <= 600)
})

test('endpoints in a private network are refused, whatever a discovery document says', async () => {
  const endpoint = 'http://10.0.0.1/admin'
  idp.intercept = (request, response) => {
    if (!request.url?.startsWith('/inward/')) return false
    const issuer = `${idp.issuer}/inward`
    const document = {
      issuer,
      authorization_endpoint: `${idp.issuer}/auth`,
      token_endpoint: endpoint,
      jwks_uri: endpoint,
    }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(document))
    return true
  }
  const visitor = createVisitor(t)
  const url = new URL(await visitor.begin({ provider: 'inward' }))
  const state = url.searchParams.get('state') ?? ''
  assert.equal(
    await visitor.arrive(`${AUTH}/callback/inward?code=x&state=${state}`),
    '/failed?error=provider_unavailable',
  )
  assert.match(t.log.join('\n'), /private network/)
})
