import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Line, linesOf } from './lines.ts'

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

const read = (text: string | Buffer, size = 7): Promise<Line[]> =>
  Array.fromAsync(linesOf(inChunks(Buffer.from(text), size)))

test('lines are numbered from one, and empty ones are counted but skipped', async () => {
  assert.deepEqual(await read('a\n\n  \nb\n'), [
    { number: 1, text: 'a' },
    { number: 4, text: 'b' },
  ])
})

test('a byte order mark, carriage returns and a last line without a line break are accepted', async () => {
  assert.deepEqual(await read('\uFEFF{}\r\n{"a":1}\r\nlast'), [
    { number: 1, text: '{}' },
    { number: 2, text: '{"a":1}' },
    { number: 3, text: 'last' },
  ])
  assert.deepEqual(await read(''), [])
  assert.deepEqual(await read('\n'), [])
})

test('a line that is too long or not UTF-8 is reported, and the next one is read', async () => {
  const long = Buffer.alloc(3_000_000, 'x')
  const broken = Buffer.from([0x22, 0xff, 0xfe, 0x22])
  const lines = await read(Buffer.concat([long, Buffer.from('\n'), broken, Buffer.from('\nfine')]), 65_536)
  assert.deepEqual(lines, [
    { number: 1, problem: 'is longer than 64 KiB' },
    { number: 2, problem: 'is not UTF-8' },
    { number: 3, text: 'fine' },
  ])
})

test('the lines do not depend on the chunks of the stream', async () => {
  const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(texts, fc.integer({ min: 1, max: 9 }), async (lines, size) => {
      const text = lines.join('\n')
      assert.deepEqual(await read(text, size), await read(text, 10_000))
    }),
    { numRuns: 100 },
  )
})
