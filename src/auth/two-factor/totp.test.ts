import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Secret } from 'otpauth'
import { secureRandom } from '#kernel/random.ts'
import { newTotpSecret, totpStep, totpUri } from './totp.ts'

/** The secret of both RFCs. */
const SECRET = Secret.fromLatin1('12345678901234567890').base32
const at = (seconds: number) => new Date(seconds * 1_000)

test('the vectors of RFC 4226 appendix D: a counter is a time step', () => {
  const codes = '755224 287082 359152 969429 338314 254676 287922 162583 399871 520489'.split(' ')
  for (const [counter, code] of codes.entries())
    assert.equal(totpStep(SECRET, code, at(counter * 30)), counter, `counter ${counter}`)
})

test('the vectors of RFC 6238 appendix B: the last 6 of their 8 digits', () => {
  const vectors: readonly [seconds: number, code: string][] = [
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ]
  for (const [seconds, code] of vectors)
    assert.equal(totpStep(SECRET, code.slice(2), at(seconds)), Math.floor(seconds / 30), `second ${seconds}`)
})

test('a code is right in its own time step and in the ones before and after, and in no other', () => {
  const code = '254676'
  const step = 5
  const right = Array.from({ length: 11 }, (_, now) => now).filter(
    (now) => totpStep(SECRET, code, at(now * 30)) === step,
  )
  assert.deepEqual(right, [4, 5, 6])
  assert.equal(totpStep(SECRET, code, at(4 * 30 - 1)), undefined)
  assert.equal(totpStep(SECRET, code, at(7 * 30 - 1)), step)
  assert.equal(totpStep(SECRET, code, at(7 * 30)), undefined)
})

test('only six digits are a code', () => {
  for (const code of ['', '25467', '2546760', '25467６', 'abcdef', '-54676', '0x1234'])
    assert.equal(totpStep(SECRET, code, at(150)), undefined, code)
})

test('a new secret has 20 random bytes, and its URI names account and service', () => {
  const secret = newTotpSecret(secureRandom)
  assert.equal(Secret.fromBase32(secret).bytes.length, 20)
  assert.notEqual(newTotpSecret(secureRandom), secret)
  const uri = new URL(totpUri(secret, { issuer: 'Bücher & Co', label: 'ada@example.com' }))
  assert.equal(decodeURIComponent(uri.pathname), '/Bücher & Co:ada@example.com')
  assert.deepEqual(Object.fromEntries(uri.searchParams), {
    ...{ issuer: 'Bücher & Co', secret, algorithm: 'SHA1', digits: '6', period: '30' },
  })
})
