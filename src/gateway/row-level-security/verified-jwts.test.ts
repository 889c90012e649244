import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVerifiedJwts } from './verified-jwts.ts'

const jwt = (userId: string, claims = '{}') => ({ userId, claims, issuer: 'i', version: 'v', expiresAt: 1 })

test('verified tokens take a bounded number of bytes, and those that were used last stay', () => {
  const kept = createVerifiedJwts(20 * 1_024)
  const claims = 'x'.repeat(1_000)
  for (let i = 0; i < 100; i++) {
    kept.set(`key ${i}`, jwt(`user ${i}`, claims))
    assert.equal(kept.get('key 0')?.userId, 'user 0')
  }
  const present = Array.from({ length: 100 }, (_, i) => kept.get(`key ${i}`)).filter(
    (one) => one !== undefined,
  )
  assert.ok(present.length > 2 && present.length < 20, String(present.length))
  assert.equal(kept.get('key 99')?.userId, 'user 99')
  assert.equal(kept.get('key 50'), undefined)
})

test('a token that is set again or removed is counted once', () => {
  const kept = createVerifiedJwts(2_000)
  for (let i = 0; i < 100; i++) kept.set('same', jwt('a'))
  kept.set('other', jwt('b'))
  assert.equal(kept.get('same')?.userId, 'a')
  for (let i = 0; i < 100; i++) {
    kept.set('gone', jwt('c'))
    kept.delete('gone')
  }
  assert.equal(kept.get('same')?.userId, 'a')
  assert.equal(kept.get('gone'), undefined)
  kept.set('large', jwt('d', 'x'.repeat(2_000)))
  assert.equal(kept.get('large'), undefined)
})
