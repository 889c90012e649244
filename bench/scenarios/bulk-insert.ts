import assert from 'node:assert/strict'
import { rowsOf } from '../answers.ts'
import { makeInserted } from '../loads.ts'
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
    await makeInserted(bench.service)
    const truncate = () => bench.service.sql('truncate bench_inserted')
    return [
      counted(bench, await insertSide(bench, truncate)),
      counted(bench, await copySide(bench, truncate)),
    ]
  },
}

/** The rows of a turn are compared in the database: their number and a digest of all values. */
function counted({ service: { databaseUrl } }: Bench, side: Side): Side {
  let expected = 0
  return {
    ...side,
    async work(seconds) {
      expected = 0
      const work = await side.work(seconds)
      expected = ROWS * BODIES
      return { ...work, done: expected }
    },
    async check() {
      if (expected === 0) return
      const digest = `select count(*)::int as rows, sum(price) as price, count(note)::int as notes, sum((meta->>'k')::int)::text as keys,
        count(distinct email)::int as addresses from bench_inserted`
      const price = rows.reduce((sum, row) => sum + row.price, 0)
      const keys = rows.reduce((sum, row) => sum + row.meta.k, 0)
      const [found] = await rowsOf(databaseUrl, digest)
      assert.deepEqual(
        { ...found, price: Number(found?.price) },
        {
          rows: expected,
          price: price * BODIES,
          notes: rows.filter(({ note }) => note !== null).length * BODIES,
          keys: `${keys * BODIES}`,
          addresses: ROWS,
        },
      )
    },
  }
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
const copySide = (bench: Bench, truncate: () => Promise<void>): Promise<Side> => {
  const text = rows.map((row) => `${Object.values(row).map(copyText).join('\t')}\n`).join('')
  return withFile(bench.after, 'rows', text, (file) => {
    const copy = `\\copy bench_inserted (${columns}) from '${file}'`
    const command = `for turn in $(seq ${BODIES}); do echo "${copy.replace('\\', '\\\\')}"; done | psql -qX -v ON_ERROR_STOP=1 "$URL"`
    return shellSide(bench, { name: COPY, command, done: ROWS * BODIES, before: truncate })
  })
}

/** A value in COPY's text format. No value here needs escaping. */
function copyText(value: unknown): string {
  if (value === null) return '\\N'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
