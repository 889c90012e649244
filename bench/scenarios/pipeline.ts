import assert from 'node:assert/strict'
import { rowsOf } from '../answers.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { ourSide, shellSide } from '../sides.ts'
import type { Side } from '../turns.ts'

const ROWS = Number(process.env.BENCH_PIPELINE_ROWS ?? 1_000_000)
const COPY = 'COPY out and in'
const COLUMNS = 'id, name, email, active, price, created_at'
const TABLES = `
create table pipe_source as
select i as id, 'name ' || i as name, 'user' || i || '@example.com' as email, i % 2 = 0 as active, (i * 1.25)::numeric(12,2) as price,
  now() - i * interval '1 minute' as created_at
from generate_series(1, ${ROWS}) i;
alter table pipe_source add primary key (id);
create table pipe_sink (id bigint primary key, name text not null, email text, active boolean, price numeric(12,2), created_at timestamptz)`
const DIFFERENT = `select count(*)::int as rows from (select ${COLUMNS} from pipe_source except select ${COLUMNS} from pipe_sink) rows`

/** A run of `POST /pipelines` from table to table. */
export const pipeline: Scenario = {
  title: 'pipeline of a million rows',
  unit: 'rows per second',
  target: { of: 'Gatehouse', against: COPY, atLeast: 0.45 },
  async open(bench) {
    await bench.service.sql(TABLES)
    const truncate = () => bench.service.sql('truncate pipe_sink')
    const psql = (text: string) => `psql -qX -v ON_ERROR_STOP=1 "$URL" -c "${text}"`
    const command = `${psql(`copy pipe_source (${COLUMNS}) to stdout`)} | ${psql(`copy pipe_sink (${COLUMNS}) from stdin`)}`
    return [
      compared(bench, runSide(bench, truncate)),
      compared(bench, shellSide(bench, { name: COPY, command, done: ROWS, before: truncate })),
    ]
  },
}

/** After each turn, every row of the source must be in the sink. */
function compared({ service: { databaseUrl } }: Bench, side: Side): Side {
  let hasRun = false
  return {
    ...side,
    async work(seconds) {
      const work = await side.work(seconds)
      hasRun = true
      return { ...work, done: work.done > 0 ? ROWS : 0 }
    },
    async check() {
      if (hasRun) assert.deepEqual(await rowsOf(databaseUrl, DIFFERENT), [{ rows: 0 }])
      hasRun = false
    },
  }
}

function runSide(bench: Bench, truncate: () => Promise<void>): Side {
  const { url, headers } = bench.service
  const body = JSON.stringify({ source: { table_name: 'pipe_source' }, sink: { table_name: 'pipe_sink' } })
  const load = async () => {
    await truncate()
    return {
      url,
      headers,
      requests: [{ method: 'POST', path: '/pipelines', body }],
      connections: 1,
      once: true,
    }
  }
  return ourSide(bench, { load, check: async () => {} })
}
