import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ReadPlan } from '#databases/plan/plan.ts'
import type { Grouping } from '#gateway/grouping/grouping.ts'
import { rowBatches } from '../../bulk/streamed-rows.ts'
import { candidatesOf, shapeOf } from './candidates.ts'

const COLUMNS = ['a', 'b', 'c'] as const
type Values = Readonly<Record<(typeof COLUMNS)[number], string | number | null>>

const value = fc.oneof(fc.constant(null), fc.integer({ min: -5, max: 5 }))
const row = fc.record({ a: fc.oneof(value, fc.constantFrom('x', 'y "q"', '€', '}],[{')), b: value, c: value })
const rows = fc.array(row, { maxLength: 30 })
/** The rows as a driver sends them: chunks that end with a whole row. */
const chunked = (given: readonly object[], sizes: readonly number[]): Buffer[] => {
  const texts = given.map((one, index) => `${index === 0 ? '[' : ','}${JSON.stringify(one)}`)
  const chunks: Buffer[] = []
  for (let size = 0; texts.length > 0; size++)
    chunks.push(Buffer.from(texts.splice(0, 1 + (sizes[size] ?? 3)).join('')))
  return [...chunks, Buffer.from(given.length === 0 ? '[]' : ']')]
}

const OPTIONS = { maxGroups: 1_000, jsonColumns: new Set<string>(), wantsTexts: () => true }

async function candidates(
  given: readonly object[],
  grouping: Grouping | undefined,
  names: Readonly<Record<string, string | null>>,
  sizes: readonly number[],
) {
  const plan = { output: COLUMNS.map((as) => ({ as })) } as unknown as ReadPlan // the only member that is read
  const shape = shapeOf(plan, { grouping, aliases: new Map(Object.entries(names)) })
  const found: object[] = []
  const texts: string[] = []
  let fetched = 0
  for await (const batch of candidatesOf(rowBatches({ json: chunked(given, sizes) }), shape, OPTIONS)) {
    found.push(...batch.rows)
    texts.push(...batch.texts())
    fetched += batch.fetched
  }
  assert.deepEqual(
    texts.map((text) => JSON.parse(text)),
    found,
  )
  assert.equal(fetched, given.length)
  return found
}

test('candidates are the rows, however the rows arrive', () =>
  fc.assert(
    fc.asyncProperty(rows, fc.array(fc.nat(4)), async (given, sizes) => {
      assert.deepEqual(
        await candidates(given, undefined, {}, sizes),
        given.map((one) => ({ ...one })),
      )
    }),
  ))

test('candidates of groups are their labels, sums and counts', () =>
  fc.assert(
    fc.asyncProperty(rows, fc.boolean(), fc.boolean(), async (given, isCumulative, dedup) => {
      const strategy = isCumulative ? 'cumulative_sum' : undefined
      const grouping = { groupBy: 'a', column: 'b', strategy, granularity: undefined, dedup } as const
      const names = { a: 'label', count: 'n' }
      assert.deepEqual(await candidates(given, grouping, names, []), groupsOf(given, isCumulative, dedup))
    }),
  ))

/** The same in the simplest way. */
function groupsOf(given: readonly Values[], isCumulative: boolean, dedup: boolean) {
  const labelOf = ({ a }: Values) => (a === null ? null : String(a))
  const labels = [...new Set(given.map(labelOf))].sort((left, right) =>
    left === null ? 1 : right === null ? -1 : Buffer.compare(Buffer.from(left), Buffer.from(right)),
  )
  let running = 0
  return labels.map((label) => {
    const members = given.filter((one) => labelOf(one) === label)
    const different = dedup
      ? [...new Map(members.map((one) => [JSON.stringify(one), one])).values()]
      : members
    const values = different.flatMap(({ b }) => (b === null ? [] : Number(b)))
    const sum = values.reduce((total, one) => total + one, 0)
    running += sum
    return { label, b: isCumulative ? running : sum, n: values.length }
  })
}
