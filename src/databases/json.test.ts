import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseJson } from '#databases/json.ts'

test('numbers that a double cannot hold keep their digits, and zero its sign', () => {
  for (const text of [
    '[12345678901234567890]',
    '{"a":0.1234567890123456789}',
    '[1,-99999999999999999999]',
    '[1e400]',
    '[ 1.00000000000000001 ]',
    '[-0]',
    '{"a":-0.0,"b":-0e1}',
  ])
    assert.equal(JSON.stringify(parseJson(text)), text.replaceAll(' ', ''))
})

test('numbers that a double holds are plain numbers', () => {
  assert.deepEqual(
    parseJson('[1,1.5,1e5,9007199254740991,0.10,-0.0000000001,-0.5,100000000000000000000]'),
    [1, 1.5, 1e5, 9007199254740991, 0.1, -1e-10, -0.5, 1e20],
  )
})

test('whatever is JSON is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value)
      assert.equal(JSON.stringify(parseJson(text)), text)
    }),
  )
})

test('an object that looks like raw JSON is an object', () => {
  assert.deepEqual(parseJson('{"rawJSON":"1"}'), { rawJSON: '1' })
})

test('what is not JSON is a SyntaxError', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          '{',
          '}',
          '[',
          ']',
          '"',
          '\\',
          ',',
          ':',
          '1',
          '1e9',
          '-',
          '12345678901234567890',
          'a',
          ' ',
        ),
      ),
      (parts) => {
        try {
          parseJson(parts.join(''))
        } catch (error) {
          assert.ok(error instanceof SyntaxError)
        }
      },
    ),
  )
})
