import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawInAdvance, randomToken, secureRandom, uuidv7, uuidv7InOrder } from './random.ts'

test('an id is a UUID version 7 (RFC 9562 section 5.7)', () => {
  // Appendix A.6 of the RFC.
  const at = new Date('2022-02-22T19:22:22.000Z')
  const random = () => Buffer.from('0000000000000cc398c4dc0c0c07398f', 'hex')
  assert.equal(uuidv7(at, random), '017f22e2-79b0-7cc3-98c4-dc0c0c07398f')
  const id = uuidv7(at, secureRandom)
  assert.match(id, /^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('ids sort by time and are unique', () => {
  const ids = Array.from({ length: 1_000 }, (_, index) =>
    uuidv7(new Date(1_700_000_000_000 + index), secureRandom),
  )
  assert.deepEqual(ids.toSorted(), ids)
  const same = new Set(Array.from({ length: 1_000 }, () => uuidv7(new Date(0), secureRandom)))
  assert.equal(same.size, 1_000)
})

test('ids in order sort also within a millisecond, and no other id depends on those before', () => {
  const first = () => Buffer.concat([Buffer.alloc(8), secureRandom(8)])
  const ofOneMoment = Array.from({ length: 1_000 }, () => uuidv7InOrder(new Date(1_700_000_000_000), first))
  assert.deepEqual(ofOneMoment.toSorted(), ofOneMoment)
  const [one, other] = [0, 1].map(() => uuidv7(new Date(0), () => Buffer.alloc(16)))
  assert.equal(one, other)
})

test('a token is 256 random bits in 43 characters', () => {
  const tokens = Array.from({ length: 1_000 }, () => randomToken(secureRandom))
  assert.equal(new Set(tokens).size, 1_000)
  for (const token of tokens) assert.match(token, /^[A-Za-z0-9_-]{43}$/)
})

test('bytes drawn in advance are used once, and more are drawn when they run out', () => {
  let draws = 0
  const random = drawInAdvance((bytes) => {
    draws++
    return secureRandom(bytes)
  })
  const taken = Array.from({ length: 1_000 }, () => random(16).toString('hex'))
  assert.equal(new Set(taken).size, 1_000)
  assert.equal(draws, 4)
  assert.equal(random(10_000).length, 10_000)
})
