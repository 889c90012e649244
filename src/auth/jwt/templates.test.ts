import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose'
import { ConfigError, loadConfig } from '#kernel/config/config.ts'
import { testService } from '#test/harness.ts'

const audience = 'https://rest.example.com'
const templates = {
  postgrest: { audience, expires_in: 600_000, claims: { role: 'authenticated', 'https://x.example/y': 'z' } },
  plain: { audience: 'https://plain.example.com', expires_in: 60_000, claims: {} },
}
const t = await testService({ config: { auth: { jwt: { templates } } } })
const ada = await t.signUp('Ada')
const asked = (query = '') => ada.get(`/api/auth/token${query}`)

test('a template has an audience, a lifetime and claims of its own', async () => {
  const own = decodeJwt((await asked()).body.token)
  const { token } = (await asked('?template=postgrest')).body
  const keys = createLocalJWKSet((await t.anon.get('/api/auth/jwks')).body)
  const { payload } = await jwtVerify(token, keys, { audience, issuer: t.service.kernel.publicUrl() })
  const { iat = 0, exp = 0, ...claims } = payload
  assert.equal(exp - iat, 600)
  const { iat: _, exp: __, ...others } = own
  assert.deepEqual(claims, {
    ...others,
    aud: audience,
    role: 'authenticated',
    'https://x.example/y': 'z',
  })
})

test('each kind of token is given out again by itself', async () => {
  const one = async (query: string) => (await asked(query)).body.token as string
  const [own, postgrest] = [await one(''), await one('?template=postgrest')]
  assert.notEqual(own, postgrest)
  assert.deepEqual([await one(''), await one('?template=postgrest')], [own, postgrest])
  assert.equal(decodeJwt(await one('?template=plain')).role, 'user')
})

test('an unknown template is 404, also by the name of a member of every object', async () => {
  for (const name of ['none', 'constructor', '__proto__', 'Postgrest']) {
    const { status, body } = await asked(`?template=${name}`)
    assert.deepEqual([status, body.code], [404, 'TEMPLATE_NOT_FOUND'], name)
  }
})

test('no setting of a template replaces a registered claim, or makes a token for the gateway', () => {
  const load = (settings: Record<string, string>) =>
    loadConfig({
      cwd: '/',
      env: { SERVICE_SERVER__PUBLIC_URL: 'https://auth.example.com', ...settings },
    })
  const PREFIX = 'SERVICE_AUTH__JWT__TEMPLATES__REST__'
  const good = load({ [`${PREFIX}AUDIENCE`]: audience, [`${PREFIX}CLAIMS__ROLE`]: 'authenticated' })
  assert.deepEqual({ ...good.auth.jwt.templates.rest?.claims }, { role: 'authenticated' })
  for (const claim of [
    'ISS',
    'SUB',
    'AUD',
    'EXP',
    'NBF',
    'IAT',
    'JTI',
    'SID',
    'AMR',
    'AUTH_TIME',
    'ORG',
    'IS_ANONYMOUS',
  ])
    assert.throws(
      () => load({ [`${PREFIX}AUDIENCE`]: audience, [`${PREFIX}CLAIMS__${claim}`]: 'x' }),
      (error) => error instanceof ConfigError && /a claim name must be/.test(error.message),
      claim,
    )
  for (const [same, more] of [
    ['https://auth.example.com', {}],
    [audience, { SERVICE_AUTH__JWT__AUDIENCE: audience }],
  ] as const)
    assert.throws(
      () => load({ [`${PREFIX}AUDIENCE`]: same, ...more }),
      /must differ from auth\.jwt\.audience/,
    )
  assert.throws(() => load({ [`${PREFIX}CLAIMS__ROLE`]: 'x' }), /audience.* is required/)
})
