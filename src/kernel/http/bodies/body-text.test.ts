import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyText } from './body-text.ts'

test('a text of any length is read back, wherever its characters lie', () => {
  for (const character of ['a', 'é', '€', '𝄞'])
    for (let before = 0; before < 4; before++) {
      const text = 'a'.repeat(before) + character.repeat(1_100_000)
      assert.ok(bodyText(Buffer.from(text)) === text, `${character} after ${before} bytes`)
    }
  assert.equal(bodyText(Buffer.alloc(0)), '')
})

test('a large text is not outside of the heap', () => {
  const bytes = Buffer.alloc(3_000_000, 'a')
  const before = process.memoryUsage().external
  const texts = Array.from({ length: 10 }, () => bodyText(bytes))
  assert.ok(process.memoryUsage().external - before < bytes.length)
  assert.equal(texts.length, 10)
})
