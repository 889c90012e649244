import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { arrayBytes } from './array-bytes.ts'

const texts = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ maxLength: 300 }),
  fc.constantFrom('', '"', '\\', '\\"', 'NULL', '{}', ',', 'é"', '𝄞\\', 'a'.repeat(64), `${'é'.repeat(70)}"`),
)

test('an array has every item quoted, with a backslash before quotes and backslashes, and NULL for null', () => {
  fc.assert(
    fc.property(fc.array(fc.option(texts), { maxLength: 200 }), (items) => {
      const expected = items.map((item) => (item === null ? 'NULL' : `"${item.replace(/["\\]/g, '\\$&')}"`))
      assert.equal(
        arrayBytes(items, (item) => item).toString(),
        Buffer.from(`{${expected.join(',')}}`).toString(),
      )
    }),
  )
})

test('an array of a long text before many short ones takes less than twice their bytes and a margin', () => {
  const items = ['x'.repeat(1_000_000), ...Array.from({ length: 100_000 }, (_, index) => `${index}`)]
  const bytes = arrayBytes(items, (item) => item)
  assert.equal(bytes.toString(), `{"${items.join('","')}"}`)
  assert.ok(bytes.buffer.byteLength < 2 * bytes.length + 1_048_576, `${bytes.buffer.byteLength}`)
})

test('an array of few texts takes less than three times their bytes', () => {
  for (const count of [1, 2, 10]) {
    const items = Array.from({ length: count }, () => 'x'.repeat(50_000))
    const bytes = arrayBytes(items, (item) => item)
    assert.ok(bytes.buffer.byteLength < 3 * bytes.length, `${bytes.buffer.byteLength} for ${bytes.length}`)
  }
})
