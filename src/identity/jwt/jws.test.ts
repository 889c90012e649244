import assert from 'node:assert/strict'
import { createHmac, createPrivateKey, createPublicKey } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { exportJWK, importJWK, jwtVerify, SignJWT } from 'jose'
import {
  type Claims,
  generateKey,
  type JwtAlgorithm,
  signJwt,
  type VerificationKey,
  verifyJwt,
} from './jws.ts'

const KID = 'one'

function keyOf(algorithm: JwtAlgorithm) {
  const { publicJwk, privateKey } = generateKey(algorithm)
  const key = createPublicKey({ key: { ...publicJwk }, format: 'jwk' })
  const verification: VerificationKey = { algorithm, publicKey: key }
  return {
    publicJwk,
    signing: { kid: KID, algorithm, privateKey: createPrivateKey(privateKey) },
    find: (kid: string) => (kid === KID ? verification : undefined),
  }
}

const keys = { ES256: keyOf('ES256'), EdDSA: keyOf('EdDSA') }
const ALGORITHMS = ['ES256', 'EdDSA'] as const
const text = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const bytes = (value: string) => Buffer.from(value, 'base64url')

for (const algorithm of ALGORITHMS) {
  const { publicJwk, signing, find } = keys[algorithm]

  test(`${algorithm}: jose verifies what is signed here, and the other way round`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (more) => {
        const claims: Claims = JSON.parse(JSON.stringify({ ...more, sub: 'ada' }))
        for (const time of ['exp', 'nbf', 'iat', 'aud', 'iss']) if (time in claims) return
        const token = signJwt(signing, claims)
        assert.deepEqual(verifyJwt(token, find)?.claims, claims)
        const { payload, protectedHeader } = await jwtVerify(token, await importJWK(publicJwk, algorithm))
        assert.deepEqual([payload, protectedHeader], [claims, { alg: algorithm, typ: 'JWT', kid: KID }])
        const theirs = await new SignJWT(claims)
          .setProtectedHeader({ alg: algorithm, kid: KID })
          .sign(signing.privateKey)
        assert.deepEqual(verifyJwt(theirs, find)?.claims, claims)
      }),
      { numRuns: 50 },
    )
    assert.deepEqual(await exportJWK(createPublicKey(signing.privateKey)), publicJwk)
  })

  test(`${algorithm}: no other text verifies, whichever character differs`, () => {
    const token = signJwt(signing, { sub: 'ada' })
    for (let at = 0; at < token.length; at++) {
      const other = token[at] === 'A' ? 'B' : 'A'
      assert.equal(verifyJwt(token.slice(0, at) + other + token.slice(at + 1), find), undefined, `${at}`)
    }
    for (const wrong of [
      `${token}=`,
      `${token}.`,
      `${token}.x`,
      ` ${token}`,
      `${token}\n`,
      token.slice(0, -1),
      '',
    ])
      assert.equal(verifyJwt(wrong, find), undefined, wrong)
    assert.equal(verifyJwt(signJwt(signing, { sub: 'a'.repeat(8_000) }), find), undefined, 'too long')
  })

  test(`${algorithm}: the header chooses neither algorithm nor key`, () => {
    const [, body = ''] = signJwt(signing, { sub: 'ada' }).split('.')
    const pem = createPublicKey(signing.privateKey).export({ format: 'pem', type: 'spki' })
    const hmac = (head: string, key: string | Buffer) =>
      `${head}.${body}.${createHmac('sha256', key).update(`${head}.${body}`).digest('base64url')}`
    const other = algorithm === 'ES256' ? keys.EdDSA : keys.ES256
    const swapped = signJwt(other.signing, { sub: 'ada' })
    const forged = [
      `${text({ alg: 'none', kid: KID })}.${body}.`,
      `${text({ alg: 'none', kid: KID })}.${body}.AA`,
      hmac(text({ alg: 'HS256', kid: KID }), pem),
      hmac(text({ alg: 'HS256', kid: KID }), bytes(publicJwk.x)),
      swapped,
      signJwt({ ...signing, kid: 'two' }, { sub: 'ada' }),
    ]
    for (const token of forged) assert.equal(verifyJwt(token, find), undefined, token)
  })

  test(`${algorithm}: a header with another type or an extension is refused`, async () => {
    const sign = (header: object) =>
      new SignJWT({ sub: 'ada' })
        .setProtectedHeader({ alg: algorithm, kid: KID, ...header })
        .sign(signing.privateKey)
    assert.ok(verifyJwt(await sign({}), find))
    assert.ok(verifyJwt(await sign({ typ: 'JWT' }), find))
    for (const header of [
      { typ: 'at+jwt' },
      { kid: undefined },
      { kid: ['one'] },
      { b64: true, crit: ['b64'] },
    ])
      assert.equal(verifyJwt(await sign(header), find), undefined, JSON.stringify(header))
  })
}
