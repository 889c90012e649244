import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { csvCell, csvLine } from '#databases/drivers/csv-lines.ts'
import { Failure } from '#kernel/errors.ts'
import { csvRecords, textsOf } from './csv-records.ts'

async function* inChunks(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
const read = async (text: string | Buffer, size = 65_536, delimiter = ',') => {
  const options = { delimiter, maxLength: 1_000 }
  const chunks = inChunks(Buffer.from(text), size)
  return (await Array.fromAsync(csvRecords(textsOf(chunks), options))).flat()
}
const cells = async (text: string, size?: number) => (await read(text, size)).map((record) => record.cells)
const refused = (promise: Promise<unknown>, why: RegExp) =>
  assert.rejects(
    promise,
    (error) => error instanceof Failure && error.code === 'invalid_file' && why.test(error.message),
  )

test('cells have quotes, delimiters and line breaks as RFC 4180 says, and no quotes mean NULL for nothing', async () => {
  for (const [text, expected] of [
    [
      'a,b\r\n1,2\r\n',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    [
      'a,b\n1,2',
      [
        ['a', 'b'],
        ['1', '2'],
      ],
    ],
    ['a\r\n\r\n"",\r\n', [['a'], [null], ['', null]]],
    ['"a ""b"", c","d\r\ne"\r\n', [['a "b", c', 'd\r\ne']]],
    ['5" disk,x"y"\n', [['5" disk', 'x"y"']]],
    [' a , b \n', [[' a ', ' b ']]],
    ['a\rb\r\n', [['a\rb']]],
    ['"a"\r\n"b"', [['a'], ['b']]],
    [',\r\n', [[null, null]]],
    ['', []],
    ['\ufeffa\n', [['a']]],
  ] as const)
    for (const size of [1, 3, 65_536])
      assert.deepEqual(await cells(text, size), expected, JSON.stringify(text))
})

test('another delimiter leaves commas alone', async () => {
  const [record] = await read('a;"b;c";1,5\n', 2, ';')
  assert.deepEqual(record?.cells, ['a', 'b;c', '1,5'])
})

test('a record has the line where it begins', async () => {
  const records = await read('a\n"b\nc"\r\n\nd\n')
  assert.deepEqual(
    records.map(({ line }) => line),
    [1, 2, 4, 5],
  )
})

test('a file that is not CSV is refused with the line, and a record that does not end is not read', async () => {
  await refused(read('a\nb\n"c" d\n', 2), /^Line 3 is not CSV: after the closing quote/)
  await refused(read('a\n"b\nc', 3), /^Line 2 is not CSV: the quote that opens a cell there is never closed/)
  await refused(
    read(`a\n"${'x\n'.repeat(600)}`, 50),
    /^The row that begins in line 2 has more than 1000 characters/,
  )
  for (const cell of [',', '"",'])
    await refused(
      read(`a\n${cell.repeat(100)}`, 50),
      /^The row that begins in line 2 has more than 1000 characters/,
    )
  await refused(read(Buffer.from([0x61, 0xff, 0x0a])), /not UTF-8/)
  await refused(read(Buffer.from('ä').subarray(0, 1)), /not UTF-8/)
})

test('every text survives being written and read, however the bytes arrive', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', '"', ',', '\r', '\n', 'ä', '🎉', '\\', ' ') })
  const rows = fc
    .integer({ min: 1, max: 4 })
    .chain((length) =>
      fc.array(fc.array(fc.option(text), { minLength: length, maxLength: length }), { minLength: 1 }),
    )
  await fc.assert(
    fc.asyncProperty(rows, fc.integer({ min: 1, max: 9 }), async (table, size) => {
      const file = table
        .map((row) => csvLine(row.map((cell) => (cell === null ? '' : csvCell(cell)))))
        .join('')
      assert.deepEqual(await cells(file, size), table)
    }),
    { numRuns: 300 },
  )
})
