import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secureRandom } from '#kernel/random.ts'
import { isSecretOf, NOBODY, newSecret, parseKey } from './secret.ts'

const PUBLIC = '0123456789abcdef'
const SECRET = 'A'.repeat(43)

test('a key has the form svc_{16 hex digits}.{43 base64url characters}', () => {
  assert.deepEqual(parseKey(`svc_${PUBLIC}.${SECRET}`), { publicId: PUBLIC, secret: SECRET })
  const none = [
    '', 'svc_', `svc_${PUBLIC}`, `svc_${PUBLIC}.`, `${PUBLIC}.${SECRET}`, `SVC_${PUBLIC}.${SECRET}`, `svc_${PUBLIC.toUpperCase()}.${SECRET}`,
    `svc_${PUBLIC}.${SECRET}A`, `svc_${PUBLIC}.${SECRET.slice(1)}`, `svc_${PUBLIC}0.${SECRET}`, `svc_${PUBLIC}.${SECRET}\n`, ` svc_${PUBLIC}.${SECRET}`,
    `svc_${PUBLIC}.${'='.repeat(43)}`, `svc_${PUBLIC}.${SECRET}.${SECRET}`, `svc_${PUBLIC}:${SECRET}`,
  ] // biome-ignore format: a table
  for (const text of none) assert.equal(parseKey(text), undefined, JSON.stringify(text))
})

test('a secret matches only its own stored hash', () => {
  const { secret, ...sealed } = newSecret(secureRandom)
  assert.match(secret, /^[\w-]{43}$/)
  assert.ok(isSecretOf(sealed, secret))
  for (const other of [
    '',
    secret.slice(1),
    `${secret}A`,
    secret.toUpperCase(),
    newSecret(secureRandom).secret,
  ]) {
    assert.ok(!isSecretOf(sealed, other))
  }
  assert.ok(!isSecretOf({ ...sealed, salt: secureRandom(16) }, secret), 'another salt must give another hash')
  assert.doesNotMatch(
    Buffer.concat([sealed.salt, sealed.secretHash]).toString('latin1'),
    new RegExp(secret.slice(0, 8)),
  )
})

test('no secret matches the placeholder for unknown keys', () => {
  for (const secret of ['', SECRET, '\0'.repeat(32)]) assert.ok(!isSecretOf(NOBODY, secret))
})
