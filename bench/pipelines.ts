/**
 * Compares a pipeline (POST /pipelines) to COPY of the same rows out of one table and into another by two psql on a pipe. Also reads the
 * peak memory of the service. `node bench/pipelines.ts`, on TEST_DATABASE_URL if it is set.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { request } from 'undici'
import { type Fixture, withFixture } from './fixture.ts'
import { isThere } from './load.ts'
import { interleaved, printRates, printTarget } from './rounds.ts'

const ROWS = 300_000
const ROUNDS = 5
const COPY = 'COPY out and in'
const PLAIN = 'pipeline'

const COLUMNS = 'id, name, email, active, price, created_at'
const TABLES = `
create table pipe_source as
select i as id, 'name ' || i as name, 'user' || i || '@example.com' as email, i % 2 = 0 as active, (i * 1.25)::numeric(12,2) as price,
  now() - i * interval '1 minute' as created_at
from generate_series(1, ${ROWS}) i;
alter table pipe_source add primary key (id);
create table pipe_sink (id bigint primary key, name text not null, email text, active boolean, price numeric(12,2), created_at timestamptz)`

await withFixture(async (fixture) => {
  await fixture.sql(TABLES)
  const hasPsql = isThere('psql', '--version')
  const onEmpty = (way: () => Promise<void>) => async () => {
    await fixture.sql('truncate pipe_sink')
    const began = performance.now()
    await way()
    return (ROWS * 1_000) / (performance.now() - began)
  }
  const rates = await interleaved(
    {
      ...(hasPsql && { [COPY]: onEmpty(() => copy(fixture)) }),
      [PLAIN]: onEmpty(() => pipe(fixture, {})),
      'pipeline with renamed columns': onEmpty(() =>
        pipe(fixture, { column_aliases: { name: 'email', email: 'name' } }),
      ),
    },
    ROUNDS,
  )
  console.log(`${ROWS} rows from table to table · ${fixture.describes} · ${ROUNDS} rounds`)
  if (!hasPsql) console.log("  psql is missing; install Debian's package postgresql-client")
  printRates(rates, { unit: 'rows per second', against: [COPY] })
  printTarget(rates, PLAIN, COPY, 0.35)
})

async function copy({ databaseUrl }: Fixture): Promise<void> {
  const psql = (text: string) => `psql -qX -v ON_ERROR_STOP=1 "$URL" -c "${text}"`
  const command = `${psql(`copy pipe_source (${COLUMNS}) to stdout`)} | ${psql(`copy pipe_sink (${COLUMNS}) from stdin`)}`
  await promisify(execFile)('sh', ['-c', command], { env: { ...process.env, URL: databaseUrl } })
}

async function pipe({ url, headers }: Fixture, transform: object): Promise<void> {
  const { body } = await request(new URL('/pipelines', url), {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({
      source: { table_name: 'pipe_source' },
      transform,
      sink: { table_name: 'pipe_sink' },
    }),
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const answer = (await body.json()) as { rows_inserted?: number }
  if (answer.rows_inserted !== ROWS) throw new Error(JSON.stringify(answer).slice(0, 1_000))
}
