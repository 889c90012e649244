import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { jsonKind } from '#databases/drivers/supabase/json-kind.ts'

const kindOf = (text: string) => jsonKind(Buffer.from(text))

/** The result of the platform's own parser. */
function expected(text: string) {
  try {
    const value: unknown = JSON.parse(text)
    if (value === null) return { kind: 'null' }
    if (typeof value !== 'object') return { kind: 'value' }
    if (!Array.isArray(value)) return { kind: 'object' }
    const isRows = value.every((item) => typeof item === 'object' && item !== null && !Array.isArray(item))
    return isRows ? { kind: 'rows', count: value.length } : { kind: 'list' }
  } catch {
    return undefined
  }
}

test('a text is accepted as JSON exactly when the platform accepts it', async () => {
  const piece = fc.constantFrom(
    ...['[', ']', '{', '}', ',', ':', '"', '""', '"a":', '\\', '\\u00e9', '\\u0', '\\n', '\n', ' ', '\t', '\0'],
    ...['true', 'nul', 'null', 'false', '0', '01', '-', '-0', '1.5', '1.', '.5', 'e5', '1E+9', 'ä', '{}', '[{}]'],
  ) // biome-ignore format: pieces
  const space = fc.constantFrom(0, 1, '\t')
  const whole = fc.tuple(fc.jsonValue(), space).map(([value, indent]) => JSON.stringify(value, null, indent))
  const cut = fc.tuple(whole, fc.nat(), fc.array(piece)).map(([text, at, pieces]) => {
    const place = at % (text.length + 1)
    return text.slice(0, place) + pieces.join('') + text.slice(place + pieces.length)
  })
  const pieces = fc.array(piece, { maxLength: 12 }).map((parts) => parts.join(''))
  await fc.assert(
    fc.asyncProperty(fc.oneof(whole, cut, pieces), async (text) => {
      // Lone surrogates have no UTF-8 form.
      fc.pre(text.isWellFormed())
      assert.deepEqual(await kindOf(text), expected(text), text)
    }),
    { numRuns: 2_000 },
  )
})

test('bytes that are not UTF-8, and JSON deeper than any database writes, are refused', async () => {
  assert.equal(await jsonKind(Buffer.from([0x22, 0xff, 0x22])), undefined)
  assert.equal(await kindOf('['.repeat(20_000) + ']'.repeat(20_000)), undefined)
  assert.equal(await kindOf(''), undefined)
})

test('reading a large text yields to other work, at any position', async () => {
  const size = 24_000_000
  const many = `[${Array.from({ length: 200_000 }, (_, id) => `{"id":${id},"title":"a title of some length"}`)}]`
  const texts = [many, `[{"a":"${'x'.repeat(size)}"}]`, `[{"a":[1${',1'.repeat(size / 2)}]}]`]
  for (const text of texts) {
    const bytes = Buffer.from(text)
    let [turns, isOver] = [0, false]
    const turn = () => {
      turns++
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    assert.equal((await jsonKind(bytes))?.kind, 'rows')
    isOver = true
    assert.ok(turns >= 3, `others had ${turns} turns`)
  }
})
