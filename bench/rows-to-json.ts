/**
 * Compares ways to turn rows into JSON inside this process: ours (bytes copied by column type), the text of `json_agg`, and pg's parsed
 * values with JSON.stringify. `node bench/rows-to-json.ts`, on TEST_DATABASE_URL if it is set. `npm run bench -- rows-1000` compares over HTTP.
 */

import pg from 'pg'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { readFetch } from '#databases/request/read-request.ts'
import { ORDINARY_LIMITS } from '#test/drivers/calls.ts'
import { withFixture } from './fixture.ts'
import { openGatewayDriver } from './gateway-driver.ts'
import { interleaved, printRates, printTarget, type Way } from './rounds.ts'

const CONNECTIONS = 4
const ROUNDS = 5
const MILLISECONDS = 600
const BY_HAND = 'parsed and stringified'
const JSON_AGG = 'json_agg'

const bodyOf = (rows: number) => ({
  table: 'bench_rows',
  conditions: [{ column: 'id', operator: 'lte', value: rows }],
  limit: rows,
})

await withFixture(async (fixture) => {
  console.log(`rows to JSON · ${fixture.describes} · ${CONNECTIONS} connections`)
  await withWays(fixture.databaseUrl, async (ways) => {
    for (const rows of [1, 100, 1_000]) {
      const rates = await interleaved(ways(rows), ROUNDS)
      console.log(`\n${rows} rows inside the process · ${ROUNDS} × ${MILLISECONDS} ms`)
      printRates(rates, { unit: 'responses per second', against: [BY_HAND, JSON_AGG] })
      if (rows === 1_000) printTarget(rates, 'ours', JSON_AGG, 1.1)
    }
  })
})

type Ways = (rows: number) => Readonly<Record<string, Way>>

async function withWays(url: string, work: (ways: Ways) => Promise<void>): Promise<void> {
  const driver = openGatewayDriver(url, { maxConnections: CONNECTIONS, maxWaiting: 1_000 })
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  const limits = ORDINARY_LIMITS
  try {
    await work((rows) => ({
      ours: answersPerSecond(async () => {
        const { json } = await driver.select(
          await driver.plan(readFetch(bodyOf(rows), { limits }), EVERY_RIGHT),
        )
        let bytes = 0
        for await (const chunk of json) bytes += chunk.length
        return bytes
      }),
      [JSON_AGG]: answersPerSecond(async () => {
        const text = `select coalesce(json_agg(t)::text, '[]') as json from (select * from bench_rows where id <= $1 limit ${rows}) t`
        const result = await pool.query<{ json: string }>({ name: `agg${rows}`, text, values: [rows] })
        return Buffer.from(result.rows[0]?.json ?? '').length
      }),
      [BY_HAND]: answersPerSecond(async () => {
        const text = `select * from bench_rows where id <= $1 limit ${rows}`
        const result = await pool.query({ name: `parsed${rows}`, text, values: [rows] })
        return Buffer.from(JSON.stringify(result.rows)).length
      }),
    }))
  } finally {
    await Promise.all([pool.end(), driver.close()])
  }
}

/** Runs as many callers as there are connections. */
function answersPerSecond(answer: () => Promise<number>): Way {
  return async () => {
    const end = performance.now() + MILLISECONDS
    let answers = 0
    const caller = async () => {
      while (performance.now() < end) {
        if ((await answer()) === 0) throw new Error('an empty response')
        answers++
      }
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, caller))
    return (answers * 1_000) / MILLISECONDS
  }
}
