import assert from 'node:assert/strict'
import { rowsOf } from '../answers.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { ourSide, shellSide, withFile } from '../sides.ts'
import type { Side } from '../turns.ts'

const ROWS = 10_000
/** Bodies of a turn. */
const BODIES = 4
const COPY = 'COPY from one connection'

const rows = Array.from({ length: ROWS }, (_, index) => ({
  name: `name ${index}`,
  email: `user${index}@example.com`,
  active: index % 2 === 0,
  price: index * 1.25,
  created_at: new Date(1_700_000_000_000 + index * 60_000).toISOString(),
  note: index % 3 > 0 ? `${'lorem ipsum dolor '.repeat(4)}${index}` : null,
  meta: { k: index },
}))
const columns = Object.keys(rows[0] ?? {}).join(', ')

export const bulkInsert: Scenario = {
  title: 'bulk insert, 10,000 rows a body',
  unit: 'rows per second',
  target: { of: 'Gatehouse', against: COPY, atLeast: 0.45 },
  async open(bench) {
    const truncate = () => bench.service.sql('truncate bench_inserted')
    return [
      counted(bench, await insertSide(bench, truncate)),
      counted(bench, await copySide(bench, truncate)),
    ]
  },
}

/** After each turn, the table must have all rows: their number, and sums over the values. */
function counted({ service: { databaseUrl } }: Bench, side: Side): Side {
  let hasRun = false
  return {
    ...side,
    async work() {
      const { done, ...work } = await side.work(PATIENCE)
      hasRun = true
      return { ...work, done: done > 0 ? ROWS * BODIES : 0 }
    },
    async check() {
      if (hasRun) assert.deepEqual(await rowsOf(databaseUrl, SUMS), [EXPECTED])
      hasRun = false
    },
  }
}

/** Seconds that all bodies of a turn may take. */
const PATIENCE = 600

const SUMS = `select count(*)::int as rows, sum(price)::float8 as prices, count(note)::int as notes, sum((meta->>'k')::int)::int as keys,
  count(distinct email)::int as addresses from bench_inserted`

const sumOf = (value: (row: (typeof rows)[number]) => number): number =>
  BODIES * rows.reduce((sum, row) => sum + value(row), 0)

const EXPECTED = {
  rows: BODIES * ROWS,
  prices: sumOf(({ price }) => price),
  notes: sumOf(({ note }) => (note === null ? 0 : 1)),
  keys: sumOf(({ meta }) => meta.k),
  addresses: ROWS,
}

async function insertSide(bench: Bench, truncate: () => Promise<void>): Promise<Side> {
  const { url, headers } = bench.service
  const body = JSON.stringify({ table_name: 'bench_inserted', insert_body: rows, head: true })
  const requests = Array.from({ length: BODIES }, () => ({ method: 'PUT', path: '/gateway/insert', body }))
  const load = async () => {
    await truncate()
    return { url, headers, requests, connections: 1, once: true }
  }
  return ourSide(bench, { load, check: async () => {} })
}

/** The time includes psql's start, about 20 ms. */
async function copySide(bench: Bench, truncate: () => Promise<void>): Promise<Side> {
  const text = rows.map((row) => `${Object.values(row).map(copyText).join('\t')}\n`).join('')
  const data = await withFile(bench.after, 'rows', text)
  const copy = `\\copy bench_inserted (${columns}) from '${data}'\n`
  const script = await withFile(bench.after, 'copy.sql', copy.repeat(BODIES))
  const command = `psql -qX -v ON_ERROR_STOP=1 -f '${script}' "$URL"`
  return shellSide(bench, { name: COPY, command, done: ROWS * BODIES, before: truncate })
}

/** A value in COPY's text format. No value here needs escaping. */
function copyText(value: unknown): string {
  if (value === null) return '\\N'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
