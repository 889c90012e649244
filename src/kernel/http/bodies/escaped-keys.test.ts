import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { edge } from '../failures.ts'
import { readJson } from './body.ts'

test('a key is read correctly after any other keys', () => {
  for (const [before, text, key] of [
    ['{"a":1,"\\\\":1}', '{"a":1,"\\t":1}', '\t'],
    ['{"b":1,"12\\\\":1}', '{"b":1,"12\\"":1}', '12"'],
    ['{"c":1,"\\\\u":1}', '{"c":1,"\\u540d\\u524d":1}', '名前'],
    ['{"d":[],"caf\\\\":1}', '{"d":[] , "caf\\u00e9" : 1}', 'café'],
  ] as const) {
    for (let time = 0; time < 3; time++) readJson(before)
    assert.equal(Object.keys(readJson(text).json as object)[1], key)
  }
})

test('JSON is read without changes, with keys in their order', () => {
  const sign = fc.constantFrom('\\', '"', '\n', 'u', ':', '0', 'a', 'é', ',', '}')
  const key = fc.string({ unit: sign, maxLength: 4 })
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(null, true, 1.5),
      key,
      fc.array(tie('json')),
      fc.dictionary(key, tie('json'), { noNullPrototype: true }),
    ),
  }))
  fc.assert(
    fc.property(json, fc.boolean(), (value, isAscii) => {
      const written = JSON.stringify(value, null, 1)
      const text = isAscii ? written.replace(/é/g, '\\u00e9') : written
      assert.equal(JSON.stringify(readJson(text).json, null, 1), written)
    }),
    { numRuns: 1000 },
  )
})

test('invalid JSON is refused, also with escapes in its keys', () => {
  for (const text of [
    '{"\\q":1}',
    '{"a\\":1}',
    '{"\\n":1',
    '{"\\n" 1}',
    '"\\n":1',
    '{"a":"\\n"":1}',
    '{"\\u00":1}',
  ])
    assert.equal(readJson(text).failure?.code, 'invalid_json', text)
})

test('a member that is called __proto__ is refused by its name', () => {
  for (const text of ['{"\\u005f_proto__":{}}', '{"__proto__":1}', '[{"a":{"__proto__":{"b":"\\u0000"}}}]']) {
    const { failure } = readJson(text)
    assert.deepEqual(
      [failure?.code, failure?.message],
      ['invalid_text', 'A member of the body is called __proto__'],
    )
  }
  assert.equal(readJson('{"a":"__proto__ \\u0000"}').failure?.message, edge('invalid_text').message)
  assert.deepEqual(readJson('{"a":"__proto__"}'), { json: { a: '__proto__' } })
})
