import { CONNECTIONS, rowByGet, rowByPost } from '../loads.ts'
import { byHandSide } from '../peers/by-hand/sides.ts'
import type { Scenario } from '../scenario.ts'
import { ROWS } from '../service.ts'
import { ourSide, PGBENCH, pgbenchSide } from '../sides.ts'

const ROW = `\\set id random(1, ${ROWS})\nselect * from bench_rows where id = :id;\n`
/** V8 compiles again after some 130,000 requests. */
const WARM_UP = 10
const GET = 'Gatehouse, GET /data'
const POST = 'Gatehouse, POST /gateway/fetch'

export const rowByKeyGet: Scenario = {
  title: 'row by key, GET',
  unit: 'requests per second',
  target: { of: GET, against: PGBENCH, atLeast: 0.22 },
  warmUp: WARM_UP,
  hasLatency: true,
  open: async (bench) => [
    ourSide(bench, { name: GET, ...rowByGet(bench.service) }),
    await pgbenchSide(bench, ROW, { connections: CONNECTIONS }),
    await byHandSide(bench, 'row'),
  ],
  peers: 'row',
}

export const rowByKeyPost: Scenario = {
  title: 'row by key, POST',
  unit: 'requests per second',
  target: { of: POST, against: GET, atLeast: 0.88 },
  warmUp: WARM_UP,
  hasLatency: true,
  open: async (bench) => [
    ourSide(bench, { name: POST, ...rowByPost(bench.service) }),
    ourSide(bench, { name: GET, ...rowByGet(bench.service) }),
    await pgbenchSide(bench, ROW, { connections: CONNECTIONS }),
  ],
}
