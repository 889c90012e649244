/**
 * Rows to JSON, three ways on one server in one run: ours (bytes copied by column type), `json_agg` text passed on, and pg's
 * parsed values with JSON.stringify. `node bench/rows-to-json.ts postgres://…` prints answers per second and ratios.
 */
import { stdout } from 'node:process'
import pg from 'pg'
import { postgresDriver } from '#databases/drivers/postgres/driver.ts'
import { readFetch } from '#databases/requests.ts'

const [url] = process.argv.slice(2)
if (url === undefined)
  throw new Error('Usage: node bench/rows-to-json.ts postgres://user:password@host/database')

const connections = 4
const rounds = 5
const roundMilliseconds = 600

const make = `
drop table if exists bench_rows;
create table bench_rows as
select i as id, 'name ' || i as name, 'user' || i || '@example.com' as email, i % 2 = 0 as active, (i * 1.25)::numeric(12,2) as price,
  now() - i * interval '1 minute' as created_at, case when i % 3 > 0 then repeat('lorem ipsum dolor ', 4) || i end as note,
  jsonb_build_object('k', i) as meta
from generate_series(1, 1000) i;
alter table bench_rows add primary key (id);
analyze bench_rows`

const driver = postgresDriver({
  url,
  maxConnections: connections,
  connectTimeout: 5_000,
  statementTimeout: 30_000,
  idleTimeout: 30_000,
  applicationName: 'bench',
  maxRows: 10_000,
})
const pool = new pg.Pool({ connectionString: url, max: connections })
const limits = { columns: 256, conditions: 100, nesting: 10, rows: 1_000, maxRows: 10_000 }

type Way = (rows: number) => Promise<number>

const ways: Readonly<Record<string, Way>> = {
  async ours(rows) {
    const body = {
      table: 'bench_rows',
      conditions: [{ column: 'id', operator: 'lte', value: rows }],
      limit: rows,
    }
    const { json } = await driver.select(await driver.plan(readFetch(body, { limits })))
    let bytes = 0
    for await (const chunk of json) bytes += chunk.length
    return bytes
  },
  async json_agg(rows) {
    const text = `select coalesce(json_agg(t)::text, '[]') as json from (select * from bench_rows where id <= $1 limit ${rows}) t`
    const result = await pool.query<{ json: string }>({ name: `agg${rows}`, text, values: [rows] })
    return Buffer.from(result.rows[0]?.json ?? '').length
  },
  async parsed(rows) {
    const text = `select * from bench_rows where id <= $1 limit ${rows}`
    const result = await pool.query({ name: `parsed${rows}`, text, values: [rows] })
    return Buffer.from(JSON.stringify(result.rows)).length
  },
}

/** Answers per second, with as many callers as connections. */
async function rate(way: Way, rows: number): Promise<number> {
  const end = performance.now() + roundMilliseconds
  let answers = 0
  const caller = async () => {
    while (performance.now() < end) {
      await way(rows)
      answers++
    }
  }
  await Promise.all(Array.from({ length: connections }, caller))
  return (answers * 1_000) / roundMilliseconds
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

await pool.query(make)
for (const rows of [1, 100, 1_000]) {
  const rates = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const [name, way] of Object.entries(ways)) {
      const measured = await rate(way, rows)
      // The first round warms up.
      if (round > 0) rates.get(name)?.push(measured)
    }
  }
  const ours = median(rates.get('ours') ?? [])
  const line = [...rates].map(
    ([name, values]) =>
      `${name} ${median(values).toFixed(0)}/s (ours ${(ours / median(values)).toFixed(2)}×)`,
  )
  stdout.write(`${String(rows).padStart(5)} rows: ${line.join(' · ')}\n`)
}
await pool.query('drop table bench_rows')
await Promise.all([pool.end(), driver.close()])
