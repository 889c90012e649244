import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { eachRow } from '#databases/drivers/json-rows.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import { acceptableFilter, conditionOf } from '#gateway/webhooks/filter/filter.ts'
import { judgeRows } from '#gateway/webhooks/filter/row-filter.ts'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

/** `PROPERTY_RUNS=3000` runs more examples. A failure prints the seed for `PROPERTY_SEED`. */
const RUNS = Number(process.env.PROPERTY_RUNS ?? 25)
const seed = process.env.PROPERTY_SEED === undefined ? {} : { seed: Number(process.env.PROPERTY_SEED) }

const t = await testService()
const key = await t.key(['*'])

/** Values of each type in several spellings: equal ones, neighbours, and ends of the range. */
const SAMPLES: Readonly<Record<string, readonly string[]>> = {
  int2: ['0', '-1', '32767', '7', '+7', ' 7 '],
  int8: ['9007199254740993', '9007199254740992', '-9223372036854775808', '9223372036854775807', '0', '12'],
  numeric: [
    '1.10',
    '1.1',
    '-0.000000000000000000000001',
    '123456789012345678901234567890.5',
    '1e3',
    '.5',
    '5.',
    'NaN',
    '0',
  ],
  float8: ['0.1', '1e300', '-0', '0', 'NaN', 'Infinity', '-Infinity', '0.30000000000000004', '0.3'],
  float4: ['0.1', '16777217', '16777216', 'NaN', '1e-40', '0'],
  bool: ['true', 'false', 't', 'no', 'on', '1', '0', 'YES'],
  text: ['', 'a', 'A', 'ab', 'z', 'é', '\uffff', '😀', '10', '9', ' a', 'null', 'a"b\\'],
  bpchar: ['a', 'a  ', 'b', '', 'ab'],
  uuid: [
    '01a1fed6-8936-7ac3-bdf5-1fc3f49efcc6',
    '01A1FED689367AC3BDF51FC3F49EFCC6',
    '{01a1fed6-8936-7ac3-bdf5-1fc3f49efcc7}',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
  ],
  date: [
    '2026-01-31',
    '2024-02-29',
    '0044-03-15 BC',
    '1999-12-31 23:59',
    'infinity',
    '10000-01-01',
    '0001-01-01',
  ],
  timestamp: [
    '2026-01-31T12:00:00',
    '2026-01-31 12:00:00.000001',
    '2026-01-31',
    '2026-01-31 12:00:00+05',
    '-infinity',
    '0044-03-15 01:02:03 BC',
  ],
  timestamptz: [
    '2026-01-31T12:00:00Z',
    '2026-01-31 14:00:00+02',
    '2026-01-31 12:00:00.5+00:00',
    '2026-01-31',
    '1969-12-31 23:59:59.999999-0330',
    'infinity',
    '12026-01-31 00:00+00',
  ],
  time: ['00:00', '23:59:59.999999', '12:30', '12:30:00.1', '24:00:00', '9:05'],
}
const TYPES = Object.keys(SAMPLES)
const columnOf = (base: string) => `v_${base}`

before(() =>
  withClient(t.clientUrl, (client) =>
    client.query(
      `create table sample (id int primary key, ${TYPES.map((type) => `${columnOf(type)} ${type === 'bpchar' ? 'character(4)' : type} ${['text', 'bpchar'].includes(type) ? 'collate "C"' : ''}`).join(', ')})`,
    ),
  ),
)

const value = (type: string) => fc.constantFrom(...(SAMPLES[type] ?? []))
const row = fc.record(Object.fromEntries(TYPES.map((type) => [columnOf(type), fc.option(value(type))])))

const comparison = fc.constantFrom(...TYPES).chain((type) =>
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        operator: fc.constantFrom('eq', 'neq', 'gt', 'gte', 'lt', 'lte'),
        column: fc.constant(columnOf(type)),
        value: value(type),
      }),
    },
    fc.record({
      operator: fc.constantFrom('eq', 'neq'),
      column: fc.constant(columnOf(type)),
      value: fc.constant(null),
    }),
    fc.record({
      operator: fc.constant('in'),
      column: fc.constant(columnOf(type)),
      value: fc.array(fc.option(value(type)), { maxLength: 4 }),
    }),
    fc.record({
      operator: fc.constant('is'),
      column: fc.constant(columnOf(type)),
      value: type === 'bool' ? fc.constantFrom('null', 'true', 'false', 'unknown') : fc.constant('null'),
    }),
  ),
)
const { condition } = fc.letrec((tie) => ({
  condition: fc.oneof(
    { maxDepth: 3 },
    comparison,
    fc.record({ or: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ and: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ not: tie('condition') }),
  ),
}))

const fieldOf = (member: string) => ({
  member,
  // Only these two members are looked at.
  column: { base: member.slice('v_'.length), category: 'U' } as Column,
  isStripped: false,
})

test('a filter lets through the rows that the same conditions find in PostgreSQL', async () => {
  let compared = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 3, maxLength: 6 }),
      fc.array(condition, { minLength: 5, maxLength: 5 }),
      async (rows, conditions) => {
        await withClient(t.clientUrl, (client) => client.query('truncate sample'))
        const body = rows.map((one, id) => ({ id, ...one }))
        const written = await key.send('PUT', '/gateway/insert', {
          body: { table_name: 'sample', insert_body: body },
        })
        assert.equal(written.status, 200, written.text)
        const all = await key.post('/gateway/fetch', { table_name: 'sample', sort_by: { field: 'id' } })
        const texts = [...eachRow(all.text.slice(all.text.indexOf('['), all.text.lastIndexOf(']') + 1))]
        for (const one of conditions) {
          const found = await key.post('/gateway/fetch', {
            table_name: 'sample',
            columns: ['id'],
            conditions: [one],
            sort_by: { field: 'id' },
          })
          // A value that PostgreSQL refuses.
          if (found.status !== 200) continue
          compared++
          const filter = acceptableFilter(t.service.kernel, [one]) ?? ''
          const judged = await Promise.all(
            texts.map((text) => judgeRows(`[${text}]`, conditionOf(t.service.kernel, filter), fieldOf)),
          )
          const met = judged.flatMap((isMet, id) => (isMet === 'met' ? [id] : []))
          const expected = found.body.data.map(({ id }: { id: number }) => id)
          assert.deepEqual(met, expected, JSON.stringify({ one, texts }))
        }
      },
    ),
    { numRuns: RUNS, ...seed },
  )
  assert.ok(compared > RUNS, `${compared} comparisons`)
})

test('a column that the rows do not have is unknown unless another decides, and numbers keep every digit without a type', async () => {
  const meets = (row: string, filter: object) =>
    judgeRows(`[${row}]`, conditionOf(t.service.kernel, JSON.stringify(filter)), (member) => ({
      member,
      column: undefined,
      isStripped: false,
    }))
  assert.equal(await meets('{"a":1}', { operator: 'is', column: 'b', value: 'null' }), 'unknown')
  assert.equal(await meets('{"a":1}', { not: { column: 'b', value: 1 } }), 'unknown')
  const [a, b] = [
    { column: 'a', value: 1 },
    { column: 'b', value: 1 },
  ]
  for (const [row, and, or] of [
    ['{"a":1}', 'unknown', 'met'],
    ['{"a":2}', 'unmet', 'unknown'],
    ['{"a":null}', 'unmet', 'unknown'],
  ] as const) {
    assert.equal(await meets(row, { and: [a, b] }), and, row)
    assert.equal(await meets(row, { or: [a, b] }), or, row)
    assert.equal(
      await meets(row, { not: { and: [a, b] } }),
      and === 'unmet' && row !== '{"a":null}' ? 'met' : 'unknown',
      row,
    )
  }
  assert.equal(
    await meets('{"a":12345678901234567891}', { operator: 'gt', column: 'a', value: '12345678901234567890' }),
    'met',
  )
  assert.equal(
    await meets('{"a":12345678901234567890}', { operator: 'gt', column: 'a', value: '12345678901234567890' }),
    'unmet',
  )
  assert.equal(await meets('{"a":"x"}', { column: 'a', value: 'x' }), 'met')
  assert.equal(await meets('{"a":{"b":1}}', { operator: 'neq', column: 'a', value: 'x' }), 'unmet')
})
