import assert from 'node:assert/strict'
import { constants, createHmac, generateKeyPairSync, KeyObject, sign as signBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { exportSPKI, importJWK } from 'jose'
import { actor } from '#test/harness.ts'
import { AUDIENCE, newKey, type SigningKey, startJwtIssuer } from '#test/jwt-issuer.ts'
import { createTenants, fetchDocs } from '#test/tenants.ts'

const [acme, mallory] = [await startJwtIssuer(), await startJwtIssuer()]
const [rsa, ec384, forEncryption] = [await newKey('RS256'), await newKey('ES384'), await newKey()]
const [first = rsa] = acme.keys
const weak = shortKey()
const shared = {
  kty: 'oct',
  kid: 'shared',
  alg: 'HS256',
  k: Buffer.from('a shared secret of 32 bytes ....').toString('base64url'),
}
acme.keys.push(
  rsa,
  ec384,
  { ...forEncryption, jwk: { ...forEncryption.jwk, use: 'enc' } },
  { ...rsa, kid: 'weak', jwk: weak.jwk },
  { ...rsa, kid: 'shared', jwk: shared },
  { ...first, kid: 'broken', jwk: { ...first.jwk, kid: 'broken', x: 'AA', y: 'AA' } },
  { ...first, kid: 'signs', jwk: { ...first.jwk, kid: 'signs', key_ops: ['sign', 'verify'] } },
)
const { t, users } = await createTenants(({ url, policies }) => ({
  outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  clients: {
    jwt: {
      url,
      enforce_api_keys: false,
      row_level_security: {
        ...policies,
        issuers: [
          {
            issuer: acme.issuer,
            audience: [AUDIENCE],
            authorized_parties: ['the-app'],
            required_claims: { tenant: 't1', scope: 'rows' },
            claims_map: { organization_id: 'org', data: 'data', organization_role: 'org_roles' },
          },
        ],
      },
    },
    typed: {
      url,
      enforce_api_keys: false,
      row_level_security: {
        ...policies,
        issuers: [{ issuer: acme.issuer, audience: [AUDIENCE], typ: 'at+jwt' }],
      },
    },
  },
}))

const seconds = () => Math.floor(Date.now() / 1_000)
const right = { sub: 'ada', azp: 'the-app', tenant: 't1', scope: 'read rows' }
/** A token of the issuer that is right but for these claims. */
const signed = (claims: Readonly<Record<string, unknown>> = {}, more?: Parameters<typeof acme.sign>[1]) =>
  acme.sign({ ...right, ...claims }, more)
const ask = (token: string, name = 'jwt') =>
  fetchDocs(actor(t.url, { 'x-service-client': name, authorization: `Bearer ${token}` }))

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const decoded = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString())
const [, rightPayload = ''] = (await signed()).split('.')
/** A token with any header and the right claims, signed by a function. */
const made = (header: object, sign: (input: string) => Buffer, payload = rightPayload) => {
  const input = `${encoded(header)}.${payload}`
  return `${input}.${sign(input).toString('base64url')}`
}
const hmac = (secret: string | Buffer) => (input: string) =>
  createHmac('sha256', secret).update(input).digest()

const es256 = (input: string) =>
  signBytes('sha256', Buffer.from(input), {
    key: KeyObject.from(first.privateKey),
    dsaEncoding: 'ieee-p1363',
  })

/** RSA with 1024 bits, which the library does not sign with. */
function shortKey() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  return {
    privateKey,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid: 'weak', alg: 'RS256', use: 'sig' },
  }
}

async function publicPem({ jwk, alg }: SigningKey): Promise<string> {
  return exportSPKI((await importJWK(jwk, alg, { extractable: true })) as CryptoKey) // a public key
}

const INVALID: Readonly<Record<string, () => string | Promise<string>>> = {
  'it has no signature, and says so': () => made({ alg: 'none' }, () => Buffer.alloc(0)),
  'it says NONE': () => made({ alg: 'NONE', kid: first.kid }, () => Buffer.alloc(0)),
  'it says none, and has a signature': async () => made({ alg: 'none' }, hmac('x')),
  'its public key was used as an HMAC secret, as PEM': async () =>
    made({ alg: 'HS256', kid: rsa.kid }, hmac(await publicPem(rsa))),
  'its public key was used as an HMAC secret, as JWK': () =>
    made({ alg: 'HS256', kid: rsa.kid }, hmac(JSON.stringify(rsa.jwk))),
  'its HMAC secret is published': () =>
    made({ alg: 'HS256', kid: 'shared' }, hmac(Buffer.from(shared.k, 'base64url'))),
  'its HMAC is empty': () => made({ alg: 'HS256' }, hmac('')),
  'its claims were changed': async () => {
    const [header, payload, signature] = (await signed()).split('.')
    return `${header}.${encoded({ ...decoded(payload), sub: 'cem' })}.${signature}`
  },
  'its header was changed': async () => {
    const [header, payload, signature] = (await signed()).split('.')
    return `${encoded({ ...decoded(header), typ: 'JWT' })}.${payload}.${signature}`
  },
  'its signature was taken away': async () => (await signed()).replace(/[^.]+$/, ''),
  'its signature was cut': async () => (await signed()).slice(0, -8),
  'its signature is that of another token': async () =>
    `${(await signed()).replace(/[^.]+$/, '')}${(await signed({ sub: 'cem' })).split('.')[2]}`,
  'its signature is all zeros': () => made({ alg: 'ES256', kid: first.kid }, () => Buffer.alloc(64)),
  'its key is another one with a published name': async () =>
    signed({}, { key: { ...(await newKey()), kid: first.kid } }),
  'its key is not published': async () => signed({}, { key: await newKey() }),
  'its key is in its own header': async () => {
    const key = await newKey()
    return signed({}, { key, header: { jwk: key.jwk } })
  },
  'its header names where its key is': async () =>
    signed({}, { key: mallory.keys[0] ?? rsa, header: { jku: mallory.jwksUrl, x5u: mallory.jwksUrl } }),
  'its issuer is another one, which signs in the name of this one': () =>
    mallory.sign({ ...right, iss: acme.issuer }),
  'it names no key, and several fit': async () => {
    acme.keys.push(await newKey())
    t.advance(11_000)
    await ask(await signed({}, { key: await newKey() }))
    return made({ alg: 'ES256' }, es256)
  },
  'its algorithm is not one of the settings': () => signed({}, { key: ec384 }),
  'its algorithm is another one of the same key': () =>
    made({ alg: 'PS256', kid: rsa.kid }, (input) => {
      const padding = constants.RSA_PKCS1_PSS_PADDING
      const key = KeyObject.from(rsa.privateKey)
      return signBytes('sha256', Buffer.from(input), { key, padding, saltLength: 32 })
    }),
  'its key is for encryption': () => signed({}, { key: forEncryption }),
  'its key is a short one': () =>
    made({ alg: 'RS256', kid: 'weak' }, (input) => signBytes('sha256', Buffer.from(input), weak.privateKey)),
  'its key is broken': () => made({ alg: 'ES256', kid: 'broken' }, es256),
  'its key is published for signing': () => made({ alg: 'ES256', kid: 'signs' }, es256),
  'its header asks for an unknown extension': () =>
    made({ alg: 'ES256', kid: first.kid, crit: ['exp2'], exp2: 1 }, es256),
  'its payload is not encoded': () => {
    const header = { alg: 'ES256', kid: first.kid, b64: false, crit: ['b64'] }
    return made(header, es256)
  },
  'its audience is another service': () => signed({ aud: 'https://other.example.com' }),
  'its audience only begins like this one': () => signed({ aud: `${AUDIENCE}.evil.example` }),
  'its audiences are others': () => signed({ aud: ['https://a.example', 'https://b.example'] }),
  'it has no audience': () => signed({ aud: undefined }),
  'its party is another app': () => signed({ azp: 'other-app' }),
  'it has no party': () => signed({ azp: undefined }),
  'one of its two parties is another app': () => signed({ client_id: 'other-app' }),
  'its party is a list': () => signed({ azp: ['the-app'] }),
  'it is an ID token of Cognito': () => signed({ token_use: 'id' }),
  'it ends a session': () => signed({}, { header: { typ: 'logout+jwt' } }),
  'it is a proof of possession': () => signed({}, { header: { typ: 'dpop+jwt' } }),
  'it lacks a required claim': () => signed({ tenant: undefined }),
  'it has another value of a required claim': () => signed({ tenant: 't2' }),
  'its scope only contains the text': () => signed({ scope: 'read browse' }),
  'it never ends': () => signed({ exp: undefined }),
  'its end is a text': () => signed({ exp: '9999999999' }),
  'its end is too far away': () => signed({ exp: 1e300 }),
  'it lives too long': () => signed({ exp: seconds() + 86_400 + 60 }),
  'it does not say when it was made': () => signed({ iat: undefined }),
  'it was made in the future': () => signed({ iat: seconds() + 120 }),
  'it is not valid yet': () => signed({ nbf: seconds() + 120 }),
  'it names nobody': () => signed({ sub: undefined }),
  'its subject is empty': () => signed({ sub: '' }),
  'its subject is a number': () => signed({ sub: 7 }),
  'its subject is a list': () => signed({ sub: ['ada'] }),
  'its subject has a NUL character': () => signed({ sub: 'ada\0' }),
  'its subject has broken Unicode': () => signed({ sub: 'ada\ud800' }),
  'its subject is too long': () => signed({ sub: 'a'.repeat(256) }),
  'its subject is a user of this service': () => signed({ sub: users.ada.id }),
  'its organization is one of this service': () => signed({ org: users.ada.id.toUpperCase() }),
  'its organization is an object': () => signed({ org: { id: 'x' } }),
  'a role has a comma': () => signed({ org: 'x', org_roles: ['a,owner'] }),
  'a claim has a NUL character': () => signed({ data: { name: ['\0'] } }),
  'a number would be rounded to another one': () => signed({ data: { id: 2 ** 53 } }),
  'a claim is nested too deep': () => signed({ data: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) }),
  'its claims are no object': () => made({ alg: 'ES256', kid: first.kid }, es256, encoded([])),
  'its claims are no JSON': () =>
    made({ alg: 'ES256', kid: first.kid }, es256, Buffer.from('{').toString('base64url')),
}

const UNKNOWN: Readonly<Record<string, () => string | Promise<string>>> = {
  'another issuer': () => mallory.sign(right),
  'the issuer with a slash at its end': () => signed({ iss: `${acme.issuer}/` }),
  'the issuer in capitals': () => signed({ iss: acme.issuer.toUpperCase() }),
  'the issuer in a list': () => signed({ iss: [acme.issuer] }),
  'no issuer': () => signed({ iss: undefined }),
  'this service': () => signed({ iss: new URL(t.url).origin }),
}

test('the tokens of these tests are right but for what their names say', async () => {
  for (const token of [
    made({ alg: 'ES256', kid: first.kid }, es256),
    await signed(),
    await signed({}, { key: rsa }),
    await signed({}, { header: { typ: 'at+jwt' } }),
    await signed({}, { header: { typ: 'application/JWT' } }),
    await signed({ token_use: 'access', client_id: 'the-app', aud: ['x', AUDIENCE] }),
    await signed({ azp: undefined, client_id: 'the-app', scope: ['rows'], exp: seconds() + 86_000 }),
    await signed({ iat: seconds() + 20, nbf: seconds() + 20 }),
  ]) {
    const answer = await ask(token)
    assert.equal(answer.status, 200, answer.text)
  }
})

describe('a JWT is refused when', () => {
  for (const [when, token] of Object.entries(INVALID))
    test(when, async () => {
      const answer = await ask(await token())
      assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_invalid'], answer.text)
      assert.ok(answer.body.error.length > 5)
      assert.equal(answer.body.data?.rows, undefined)
    })
})

describe('the issuer is not one of the settings when it is', () => {
  for (const [which, token] of Object.entries(UNKNOWN))
    test(which, async () => {
      const before = [acme.requests.length, mallory.requests.length]
      const answer = await ask(await token())
      assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_issuer_unknown'])
      assert.deepEqual([acme.requests.length, mallory.requests.length], before)
    })
})

test('a JWT that has ended is expired, without tolerance', async () => {
  for (const exp of [seconds() - 3_600, seconds() - 1, seconds()]) {
    const answer = await ask(await signed({ iat: seconds() - 7_200, exp }))
    assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_expired'])
  }
})

test('where typ is set, a token of another type is refused', async () => {
  const token = (typ?: string) => acme.sign({ sub: 'x' }, typ === undefined ? {} : { header: { typ } })
  for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt'])
    assert.equal((await ask(await token(typ), 'typed')).status, 200, typ)
  for (const typ of [undefined, 'JWT', 'id+jwt']) {
    const answer = await ask(await token(typ), 'typed')
    assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_invalid'], String(typ))
  }
})

test('a token in five parts, and what is no token, are invalid sessions', async () => {
  for (const token of ['a.b.c.d.e', 'a.b', `${await signed()}.`, 'a b c', '..', '.x.']) {
    const answer = await ask(token)
    assert.deepEqual([answer.status, answer.body.code], [401, 'invalid_session'], token)
  }
})

test('no forged token has caused a request to another server', () => {
  assert.deepEqual(mallory.requests, [])
})
