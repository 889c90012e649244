import { CONNECTIONS, filteredPage, firstRows, pageWhere } from '../loads.ts'
import { byHandSide } from '../peers/by-hand/sides.ts'
import type { Scenario } from '../scenario.ts'
import { ROWS } from '../service.ts'
import { ourSide, PGBENCH, pgbenchSide } from '../sides.ts'

const BY_HAND = 'Fastify and pg by hand'
const select = (count: number) => `select * from bench_rows where id <= ${count};\n`

export const rows100: Scenario = {
  title: '100 rows',
  unit: 'requests per second',
  target: { of: 'Gatehouse', against: PGBENCH, atLeast: 0.24 },
  hasLatency: true,
  open: async (bench) => [
    ourSide(bench, firstRows(bench.service, 100)),
    await pgbenchSide(bench, select(100), { connections: CONNECTIONS }),
    await byHandSide(bench, 'rows100', BY_HAND),
  ],
  peers: 'rows100',
}

export const rows1000: Scenario = {
  title: '1,000 rows',
  unit: 'requests per second',
  target: { of: 'Gatehouse', against: BY_HAND, atLeast: 3 },
  hasLatency: true,
  open: async (bench) => [
    ourSide(bench, firstRows(bench.service, 1_000)),
    await byHandSide(bench, 'rows1000', BY_HAND),
    await pgbenchSide(bench, select(1_000), { connections: CONNECTIONS }),
  ],
  peers: 'rows1000',
}

/** 25 rows by a condition on an unindexed column, in the order of the key. */
export const filtered: Scenario = {
  title: 'filtered page of 25 rows',
  unit: 'requests per second',
  hasLatency: true,
  open: async (bench) => [
    ourSide(bench, filteredPage(bench.service)),
    await pgbenchSide(
      bench,
      `\\set id random(1, ${ROWS})\nselect * from bench_rows where ${pageWhere(':id')};\n`,
      { connections: CONNECTIONS },
    ),
  ],
}
