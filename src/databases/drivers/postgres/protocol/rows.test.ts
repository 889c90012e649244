import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { columnWriter, RowWriter } from '#databases/drivers/postgres/protocol/rows.ts'

const TEXT = 25
const INT8 = 20

/** A DataRow message after `before` other bytes, and nothing after it. */
function dataRow(values: readonly (string | null)[], before: number): Buffer {
  const parts = values.flatMap((value) => {
    const length = Buffer.alloc(4)
    length.writeInt32BE(value === null ? -1 : Buffer.byteLength(value))
    return value === null ? [length] : [length, Buffer.from(value)]
  })
  return Buffer.concat([Buffer.alloc(before + 7), ...parts])
}

function written(writer: RowWriter): string {
  writer.finish()
  return Buffer.concat(writer.take()).toString()
}

/** Bytes that need an escape, and adjacent ones, at every distance. */
const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      '\u0001',
      '\u001f',
      ' ',
      '!',
      '"',
      '#',
      '[',
      '\\',
      ']',
      '\u007f',
      '\u0080',
      'é',
      '€',
      '😀',
    ),
    fc.constantFrom('a', 'b', 'c'),
  ),
  maxLength: 40,
})

test('any texts of a row are the same in JSON', () => {
  const row = fc.uniqueArray(fc.record({ name: text, value: fc.option(text) }), {
    minLength: 1,
    maxLength: 5,
    selector: ({ name }) => name,
  })
  const property = fc.property(
    row,
    fc.nat(9),
    fc.boolean(),
    fc.nat(3),
    (members, before, stripNulls, rows) => {
      const columns = members.map(({ name }) => columnWriter(name, TEXT))
      const writer = new RowWriter(columns, { stripNulls, limit: 10 })
      const values = members.map(({ value }) => value)
      const data = dataRow(values, before)
      for (let count = 0; count < rows; count++) writer.row(data, before + 7, data.length, data.length)
      const kept = members.filter(({ value }) => value !== null || !stripNulls)
      const expected = `{${kept.map(({ name, value }) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`
      assert.equal(written(writer), `[${Array(rows).fill(expected).join(',')}]`)
    },
  )
  fc.assert(property, { numRuns: 500 })
})

test('a long text is complete, with escapes at any position', () => {
  for (const length of [255, 256, 257, 1023, 1024, 1025, 5_000]) {
    for (const at of [0, 1, 2, 3, length >> 1, length - 2, length - 1]) {
      const value = `${'x'.repeat(at)}"${'y'.repeat(length - at - 1)}`
      const data = dataRow([value, '123456789012345678'], 0)
      const writer = new RowWriter([columnWriter('a', TEXT), columnWriter('b', INT8)], {
        stripNulls: false,
        limit: 1,
      })
      writer.row(data, 7, data.length, data.length)
      assert.equal(written(writer), `[{"a":${JSON.stringify(value)},"b":123456789012345678}]`)
    }
  }
})
