/**
 * Compares reads of one row by key, with an API key, to the database alone (`pgbench -M prepared`, the same query) and to a hand-written
 * route (Fastify and `pg`) without authentication. `node bench/single-row.ts`, on TEST_DATABASE_URL if it is set.
 */
import { ROWS, withFixture } from './fixture.ts'
import { type Load, loader, requestsPerSecond } from './load.ts'
import { withPeer } from './peer.ts'
import { hasPgbench, PGBENCH, transactionsPerSecond } from './pgbench.ts'
import { interleaved, printRates, printTarget } from './rounds.ts'

const CONNECTIONS = 16
const ROUNDS = 7
const BY_HAND = 'Fastify and pg, hand-written'
const SECONDS = 2
const ROW = `\\set id random(1, ${ROWS})\nselect * from bench_rows where id = :id;\n`

const ids = Array.from({ length: 1_000 }, (_, index) => 1 + ((index * 7_919) % ROWS))

await withFixture(({ describes, url, headers, databaseUrl }) =>
  withPeer('rows.ts', [databaseUrl], async (byHand) => {
    const load = (more: Omit<Load, 'connections'>) => () =>
      requestsPerSecond({ ...more, connections: CONNECTIONS }, SECONDS)
    const body = (id: number) =>
      JSON.stringify({ table_name: 'bench_rows', conditions: [{ operator: 'eq', column: 'id', value: id }] })
    const query = (id: number) => `/data?view=bench_rows&eq_column=id&eq_value=${id}`
    const size = { connections: CONNECTIONS, seconds: SECONDS }
    const rates = await interleaved(
      {
        ...(hasPgbench && { [PGBENCH]: () => transactionsPerSecond(databaseUrl, ROW, size) }),
        [BY_HAND]: load({
          url: byHand,
          targets: ids.map((id) => ({ path: `/row/${id}` })),
        }),
        'POST /gateway/fetch': load({
          url,
          method: 'POST',
          headers,
          targets: ids.map((id) => ({ path: '/gateway/fetch', body: body(id) })),
        }),
        'GET /data': load({ url, headers, targets: ids.map((id) => ({ path: query(id) })) }),
      },
      ROUNDS,
    )
    console.log(
      `one row by key · ${describes} · ${CONNECTIONS} connections · ${ROUNDS} × ${SECONDS} s by ${loader}`,
    )
    if (!hasPgbench) console.log("  pgbench is missing; install Debian's package postgresql")
    printRates(rates, { unit: 'per second', against: [PGBENCH, BY_HAND] })
    printTarget(rates, 'POST /gateway/fetch', PGBENCH, 0.15)
  }),
)
