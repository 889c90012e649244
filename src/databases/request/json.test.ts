import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseJson } from '#databases/request/json.ts'

test('numbers that a double cannot represent keep their digits, and zero keeps its sign', () => {
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

test('a number keeps its scale, and the way it is written', () => {
  for (const text of [
    '[1.10]',
    '{"a":[0.10,100.00,-1.0]}',
    '[1.50e3]',
    '[0.0000001]',
    '[1E-7]',
    '[1.0,"\\u0000","1.0"]',
  ])
    assert.equal(JSON.stringify(parseJson(text)), text)
})

test('every number is written as it was read, in any surrounding text', () => {
  const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 20 })
  const number = fc
    .tuple(fc.constantFrom('', '-'), fc.constantFrom('0', '1', '37'), digits, digits)
    .map(([sign, first, more, behind]) => {
      const whole = first === '0' ? first : first + more
      return sign + whole + (behind === '' ? '' : `.${behind}`)
    })
  const text = fc.oneof(fc.string(), fc.constantFrom('\0' + '0', '1.10', '\\', '"', '\\"1.0'))
  const member = fc.oneof(
    number,
    text.map((one) => JSON.stringify(one)),
    fc.constantFrom('null', 'true', '[1.0]', '{"1.0":2.0}'),
  )
  fc.assert(
    fc.property(fc.array(member), (members) => {
      const json = `[${members.join(',')}]`
      assert.equal(JSON.stringify(parseJson(json)), json)
    }),
  )
})

test('a number is not accepted as a key, even one that keeps its digits', () => {
  for (const text of [
    '{1.10:1}',
    '{"a":{1.10 \n:1}}',
    '[01.10]',
    '[1.]',
    '[.10]',
    '[1.10.1]',
    '[-]',
    '[1.10e]',
    '[+1.10]',
  ])
    assert.throws(() => parseJson(text), SyntaxError, text)
})

test('numbers that a double can represent are plain numbers', () => {
  assert.deepEqual(
    parseJson('[1,1.5,1e5,9007199254740991,0.1,-0.5,100000000000000000000]'),
    [1, 1.5, 1e5, 9007199254740991, 0.1, -0.5, 1e20],
  )
})

test('any JSON is read as JSON.parse reads it', () => {
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

test('text that is not JSON is a SyntaxError', () => {
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
