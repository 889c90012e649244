import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { actor } from '#test/harness.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { AUDIENCE, newKey, startJwtIssuer } from '#test/jwt-issuer.ts'
import { createTenants, fetchDocs } from '#test/tenants.ts'

const now = () => t.service.kernel.now().getTime() / 1_000
const [acme, beta, down, inward, wrong] = [
  await startJwtIssuer({ now }),
  await startJwtIssuer({ now }),
  await startJwtIssuer({ now }),
  await startJwtIssuer({ now }),
  await startJwtIssuer({ now }),
]
const openid = await startOpenidProvider()
openid.serve([{ id: 'the-app', secret: 'secret', redirectUris: ['https://app.example.com/'] }])
const trusted = (issuer: string, subject_prefix: string, audience = AUDIENCE) => ({
  issuer,
  subject_prefix,
  audience: [audience],
})
const { t } = await createTenants(({ url, policies }) => {
  const client = (...issuers: object[]) => ({
    url,
    enforce_api_keys: false,
    row_level_security: { ...policies, issuers },
  })
  return {
    outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
    clients: {
      jwt: client(
        trusted(acme.issuer, 'acme:'),
        trusted(beta.issuer, 'beta:'),
        trusted(down.issuer, 'down:'),
        trusted(inward.issuer, 'inward:'),
        trusted(wrong.issuer, 'wrong:'),
        trusted(openid.issuer, 'openid:', 'the-app'),
      ),
      direct: client({ ...trusted(beta.issuer, 'beta:'), jwks_url: beta.jwksUrl }),
    },
  }
})
const ask = (token: string, name = 'jwt') =>
  fetchDocs(actor(t.url, { 'x-service-client': name, authorization: `Bearer ${token}` }))
const codeOf = async (token: string, name?: string) => {
  const { status, body } = await ask(token, name)
  return status === 200 ? 200 : body.code
}

test('parallel first requests fetch the keys once', async () => {
  const tokens = await Promise.all(Array.from({ length: 50 }, (_, i) => acme.sign({ sub: `user ${i}` })))
  const answers = await Promise.all(tokens.map((token) => ask(token)))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  assert.deepEqual(acme.requests, ['/.well-known/openid-configuration', '/keys'])
})

test('with jwks_url no other address of the issuer is asked', async () => {
  assert.equal(await codeOf(await beta.sign({ sub: 'x' }), 'direct'), 200)
  assert.deepEqual(beta.requests, ['/keys'])
})

test('an ID token of an OpenID provider is accepted by the keys that it publishes, also after it has rotated them', async () => {
  assert.equal(await codeOf(await openid.idToken('the-app', { sub: 'ada' })), 200)
  assert.equal(await codeOf(await openid.idToken('other', { sub: 'ada' })), 'jwt_invalid')
  await openid.rotateKey()
  const token = await openid.idToken('the-app', { sub: 'ada' })
  assert.equal(await codeOf(token), 'jwt_invalid')
  t.advance(11_000)
  assert.equal(await codeOf(token), 200)
})

test('a new key is found at once, and unknown keys cause one request in ten seconds', async () => {
  t.advance(11_000)
  const before = acme.reads()
  const added = await newKey()
  acme.keys.unshift(added)
  assert.equal(await codeOf(await acme.sign({ sub: 'new' })), 200)
  assert.equal(acme.reads(), before + 1)
  const stranger = await newKey()
  const forged = await Promise.all(
    Array.from({ length: 20 }, (_, i) => acme.sign({ sub: `f${i}` }, { key: stranger })),
  )
  for (const code of await Promise.all(forged.map((token) => codeOf(token))))
    assert.equal(code, 'jwt_invalid')
  assert.equal(acme.reads(), before + 1)
  t.advance(11_000)
  await Promise.all(forged.map((token) => codeOf(token)))
  assert.equal(acme.reads(), before + 2)
})

test('a key that the issuer withdraws ends what it has signed, also a token that was verified before', async () => {
  const [last = assert.fail()] = acme.keys
  const token = await acme.sign({ sub: 'kept', exp: now() + 3_600 })
  assert.equal(await codeOf(token), 200)
  acme.keys.unshift(await newKey())
  acme.keys.splice(acme.keys.indexOf(last), 1)
  assert.equal(await codeOf(token), 200)
  t.advance(601_000)
  // The old keys answer while the new ones are read.
  await eventually(async () => (await codeOf(token)) === 'jwt_invalid')
})

test('an issuer that withdraws all of its keys ends what they have signed, and goes on with the next one', async () => {
  const token = await beta.sign({ sub: 'kept', exp: now() + 3_600 })
  assert.equal(await codeOf(token, 'direct'), 200)
  beta.keys = []
  t.advance(601_000)
  await eventually(async () => (await codeOf(token, 'direct')) === 'jwt_invalid')
  beta.keys = [await newKey()]
  t.advance(11_000)
  assert.equal(await codeOf(await beta.sign({ sub: 'next' }), 'direct'), 200)
  assert.equal(await codeOf(token, 'direct'), 'jwt_invalid')
})

test('known keys are kept while the issuer is away, and read again when it is back', async () => {
  assert.equal(await codeOf(await acme.sign({ sub: 'before' })), 200)
  acme.intercept = (_request, response) => fails(response)
  t.advance(601_000)
  const before = acme.reads()
  for (const sub of ['a', 'b', 'c']) assert.equal(await codeOf(await acme.sign({ sub })), 200)
  assert.equal(acme.reads(), before + 1, 'it is asked once in the time of a cool-down')
  t.advance(7_200_000)
  assert.equal(await codeOf(await acme.sign({ sub: 'much later' })), 200)
  acme.intercept = () => false
  t.advance(11_000)
  acme.keys.unshift(await newKey())
  await eventually(async () => (await codeOf(await acme.sign({ sub: 'back' }))) === 200)
})

test('nobody waits for an issuer that hangs, after the first one', async () => {
  const held: ServerResponse[] = []
  acme.intercept = (_request, response) => held.push(response) > 0
  t.advance(601_000)
  const first = acme.sign({ sub: 'first' }).then((token) => codeOf(token))
  await eventually(async () => held.length === 1)
  for (const response of held.splice(0)) fails(response)
  assert.equal(await first, 200)
  t.advance(11_000)
  assert.equal(await codeOf(await acme.sign({ sub: 'second' })), 200)
  await eventually(async () => held.length === 1)
  acme.intercept = () => false
  for (const response of held) fails(response)
})

test('while the keys were never had the answer is 503 with the time to wait, and the issuer is asked once in ten seconds', async () => {
  down.intercept = (_request, response) => fails(response)
  const token = await down.sign({ sub: 'x', exp: now() + 3_600 })
  const answers = await Promise.all([ask(token), ask(token), ask(token)])
  for (const { status, body, headers } of answers) {
    assert.deepEqual([status, body.code], [503, 'issuer_unavailable'])
    assert.ok(Number(headers.get('retry-after')) >= 1)
  }
  assert.equal(await codeOf(token), 'issuer_unavailable')
  assert.equal(down.requests.length, 1)
  const told = t.log.map((line) => JSON.parse(line)).filter(({ level }) => level === 'error')
  assert.deepEqual(told, [], 'callers without a right token add no line each')
  down.intercept = () => false
  assert.equal(await codeOf(token), 'issuer_unavailable')
  t.advance(11_000)
  assert.equal(await codeOf(token), 200)
  // The other issuers of the client have answered meanwhile.
  assert.equal(await codeOf(await acme.sign({ sub: 'other' })), 200)
})

test('keys and waits of a time before the clock was set back do not last longer', async () => {
  const token = () => acme.sign({ sub: 'earlier', iat: now() - 60, exp: now() + 3_600 })
  assert.equal(await codeOf(await token()), 200)
  t.advance(-7_200_000)
  acme.keys.unshift(await newKey())
  assert.equal(await codeOf(await token()), 200, 'a new key')
  acme.keys.unshift(await newKey())
  acme.intercept = (_request, response) => fails(response)
  t.advance(11_000)
  assert.equal(await codeOf(await token()), 'jwt_invalid')
  t.advance(-7_200_000)
  acme.intercept = () => false
  await eventually(async () => (await codeOf(await token())) === 200)
})

const KEYS_ELSEWHERE = {
  'in a private network': { issuer: inward.issuer, jwks_uri: 'http://10.0.0.1/keys' },
  'at the metadata service': { issuer: inward.issuer, jwks_uri: 'http://169.254.169.254/keys' },
  'in a file': { issuer: inward.issuer, jwks_uri: 'file:///etc/passwd' },
  nowhere: { issuer: inward.issuer },
  'of another issuer': { issuer: acme.issuer, jwks_uri: acme.jwksUrl },
  'of the issuer in another spelling': { issuer: `${inward.issuer}/`, jwks_uri: inward.jwksUrl },
}

test('a document that leads to keys elsewhere is not followed', async () => {
  for (const [where, document] of Object.entries(KEYS_ELSEWHERE)) {
    inward.intercept = (_request, response) => answers(response, 200, JSON.stringify(document))
    const before = acme.requests.length
    assert.equal(await codeOf(await inward.sign({ sub: 'x' })), 'issuer_unavailable', where)
    assert.equal(acme.requests.length, before, where)
    t.advance(11_000)
  }
})

test('an answer that is no set of keys is none', async () => {
  const published = JSON.stringify({ keys: wrong.keys.map(({ jwk }) => jwk) })
  for (const [status, body] of [
    [200, '{"keys": []}'],
    [200, '{"keys": {}}'],
    [200, '[]'],
    [200, 'null'],
    [200, '<html>'],
    [200, published + ' '.repeat(300_000)],
    [201, published],
    [302, published],
  ] as const) {
    wrong.intercept = ({ url }, response) => url === '/keys' && answers(response, status, body)
    assert.equal(await codeOf(await wrong.sign({ sub: 'x' })), 'issuer_unavailable', body.slice(0, 20))
    t.advance(11_000)
  }
  wrong.intercept = () => false
  assert.equal(await codeOf(await wrong.sign({ sub: 'x' })), 200)
})

function answers(response: ServerResponse, status: number, body: string): true {
  response.writeHead(status, { 'content-type': 'application/json', location: acme.jwksUrl }).end(body)
  return true
}
const fails = (response: ServerResponse): true => answers(response, 500, '{}')
