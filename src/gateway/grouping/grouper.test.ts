import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { membersOf, rowTexts } from '#databases/drivers/json-rows.ts'
import { decimalText, parseDecimal } from '#databases/request/decimal.ts'
import { Failure } from '#kernel/errors.ts'
import { createGrouper } from './grouper.ts'
import type { Grouping } from './grouping.ts'

const plain: Grouping = {
  groupBy: 'g',
  granularity: undefined,
  column: 'n',
  strategy: undefined,
  dedup: false,
}

/** A decimal as text, and as an integer multiple of 10^-40. */
const amount = fc
  .record({
    negative: fc.boolean(),
    whole: fc.bigInt({ min: 0n, max: 10n ** 30n }),
    fraction: fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 30 }),
    exponent: fc.option(fc.integer({ min: -10, max: 10 })),
  })
  .map(({ negative, whole, fraction, exponent }) => {
    const text = `${negative ? '-' : ''}${whole}${fraction && `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`
    const digits = BigInt(`${whole}${fraction}`) * 10n ** BigInt(40 - fraction.length + (exponent ?? 0))
    return { text, value: negative ? -digits : digits }
  })

/** Parses a decimal as a multiple of 10^-40, with a different algorithm than the code. */
function scaled(text: string): bigint {
  const negative = text.startsWith('-')
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  const value = BigInt(whole) * 10n ** 40n + BigInt(fraction.padEnd(40, '0'))
  return negative ? -value : value
}

const label = fc.oneof(fc.constant(null), fc.constantFrom('a', 'b', '￿', '\u{10000}', ''), fc.string())
const sample = fc.record({ label, amount: fc.option(amount), quoted: fc.boolean() })

const rowOf = (item: { label: string | null; amount: { text: string } | null; quoted: boolean }) => {
  const json = item.amount === null ? 'null' : item.quoted ? `"${item.amount.text}"` : item.amount.text
  return `{"x":{"g":"no"},"g":${JSON.stringify(item.label)},"n":${json}}`
}

test('groups, counts and exact sums agree with an evaluation in integers', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(sample, { maxLength: 40 }), fc.boolean(), async (items, dedup) => {
      const grouper = createGrouper({ ...plain, dedup })
      for (const item of items) assert.equal(grouper.add(rowOf(item)), item.label)

      const labels = [...new Set(items.map((item) => item.label))].sort((left, right) =>
        left === null || right === null
          ? Number(left === null) - Number(right === null)
          : compare(left, right),
      )
      let running = 0n
      const expected = labels.map((one) => {
        const own = items.filter((item) => item.label === one)
        const counted = dedup
          ? own.filter((item, at) => own.findIndex((other) => rowOf(other) === rowOf(item)) === at)
          : own
        const values = counted.flatMap((item) => (item.amount === null ? [] : [item.amount.value]))
        const sum = values.reduce((total, value) => total + value, 0n)
        running += sum
        return { label: one, sum, cumulativeSum: running, count: values.length }
      })
      const found = (await Array.fromAsync(grouper.groups())).map((group) => ({
        ...group,
        sum: scaled(group.sum),
        cumulativeSum: scaled(group.cumulativeSum),
      }))
      assert.deepEqual(found, expected)
    }),
    { numRuns: 1_000 },
  )
})

test('other work has its turn while many groups are sorted', async () => {
  const grouper = createGrouper(plain)
  const labels = Array.from({ length: 60_000 }, (_, index) => `${(index * 7_919) % 60_000}`.padStart(5, '0'))
  for (const one of labels) grouper.add(`{"g":"${one}","n":1}`)
  let turns = 0
  const other = setInterval(() => turns++, 0)
  const found = await Array.fromAsync(grouper.groups())
  clearInterval(other)
  assert.deepEqual(
    found.map((group) => group.label),
    labels.toSorted(),
  )
  assert.equal(found.at(-1)?.cumulativeSum, '60000')
  assert.ok(turns > 1, `${turns} turns`)
})

/** In code point order. */
function compare(left: string, right: string): number {
  const [a, b] = [[...left], [...right]].map((text) => text.map((character) => character.codePointAt(0) ?? 0))
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const difference = (a?.[at] ?? -1) - (b?.[at] ?? -1)
    if (difference !== 0) return difference
  }
  return (a?.length ?? 0) - (b?.length ?? 0)
}

test('rows and members are cut out of JSON unchanged, for any values', () => {
  const members = fc.dictionary(fc.string(), fc.jsonValue()).map((object) => Object.entries(object))
  fc.assert(
    fc.property(fc.array(members), (rows) => {
      const texts = rows.map(
        (row) =>
          `{${row.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value, null, 1)} `).join(',')}}`,
      )
      assert.deepEqual(rowTexts(`[${texts.join(',')}]`), texts)
      texts.forEach((text, at) => {
        const expected = (rows[at] ?? []).map(([name, value]) => [name, JSON.stringify(value, null, 1)])
        assert.deepEqual([...membersOf(text)], [...new Map(expected as [string, string][])])
      })
    }),
  )
})

test('a decimal keeps its scale and digits', () => {
  for (const text of ['0', '-0.00', '1.10', '12345678901234567890.0123456789', '-7'])
    assert.equal(decimalText(parseDecimal(text) ?? assert.fail(text)), text.replace('-0.00', '0.00'))
  assert.equal(decimalText(parseDecimal('1.5e3') ?? assert.fail()), '1500')
  const longest = `${'9'.repeat(500)}.${'9'.repeat(500)}`
  assert.equal(decimalText(parseDecimal(longest) ?? assert.fail()), longest)
  assert.equal(decimalText(parseDecimal('5e-7') ?? assert.fail()), '0.0000005')
  for (const text of [
    '',
    '.',
    '-',
    'NaN',
    'Infinity',
    'true',
    '1,5',
    '0x10',
    ' 1',
    '1e',
    '1e99999',
    '1e-131071',
    '$1.00',
  ])
    assert.equal(parseDecimal(text), undefined, text)
})

test('timestamps are grouped by day, hour or minute in UTC', () => {
  const cases = [
    ['day', '2026-01-31T23:59:59.999999Z', '2026-01-31T00:00:00Z'],
    ['hour', '2026-01-31T23:59:59.999999Z', '2026-01-31T23:00:00Z'],
    ['minute', '2026-01-31T23:59:59.999999Z', '2026-01-31T23:59:00Z'],
    ['day', '2026-01-31T01:30:00+02:00', '2026-01-30T00:00:00Z'],
    ['hour', '2026-01-31T01:30:00-05:30', '2026-01-31T07:00:00Z'],
    ['minute', '2026-01-31T12:34:56', '2026-01-31T12:34:00Z'],
    ['hour', '2026-01-31', '2026-01-31T00:00:00Z'],
    ['day', '0001-02-03T04:05:06', '0001-02-03T00:00:00Z'],
    ['day', '2024-02-29 24:00:00+00', '2024-03-01T00:00:00Z'],
  ] as const
  for (const [granularity, value, expected] of cases)
    assert.equal(createGrouper({ ...plain, granularity }).add(`{"g":"${value}","n":1}`), expected, value)
  assert.equal(createGrouper({ ...plain, granularity: 'day' }).add('{"g":null,"n":1}'), null)
})

test('an invalid time or number is rejected with value, column and row', () => {
  const byDay = createGrouper({ ...plain, granularity: 'day' })
  for (const json of [
    '"infinity"',
    '"0044-03-15 00:00:00 BC"',
    '"2026-02-31"',
    '5',
    'true',
    '"9999-12-31T23:00:00-05:00"',
  ])
    assert.throws(() => byDay.add(`{"g":${json},"n":1}`), isMisfit('g'), json)
  const sums = createGrouper(plain)
  sums.add('{"g":"a","n":1}')
  for (const json of ['"NaN"', '"Infinity"', 'true', '{"a":1}', '[1]', '"ten"', `${'9'.repeat(2_000)}`])
    assert.throws(() => sums.add(`{"g":"a","n":${json}}`), isMisfit('n'), json)
})

const isMisfit = (column: string) => (error: unknown) =>
  error instanceof Failure &&
  error.status === 422 &&
  error.details?.column === column &&
  error.details.value !== undefined
