/**
 * Compares reads by key on shared connections with reads on a connection each: the control database's pipelined statements, the gateway's
 * driver, and the gateway over HTTP. Decisions 5 and 19 give the ratios below which sharing goes. `node bench/pipelining.ts`, on
 * TEST_DATABASE_URL if it is set.
 */
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { readFetch } from '#databases/request/read-request.ts'
import { createAlarm } from '#kernel/db/connection-alarm.ts'
import { createPool } from '#kernel/db/guarded-pool.ts'
import { createPipelinedStatements, preparedStatement } from '#kernel/db/pipelined-statements.ts'
import { ORDINARY_LIMITS } from '#test/drivers/calls.ts'
import { type Fixture, withFixture } from './fixture.ts'
import { openGatewayDriver } from './gateway-driver.ts'
import { type Loader, startLoader } from './load/loader.ts'
import { ids } from './loads.ts'
import { interleaved, printRates, printTarget, type Way } from './rounds.ts'

const CALLERS = 16
const CONNECTIONS = 20
const ROUNDS = 8
const MILLISECONDS = 600
const SECONDS = 2
const SHARED = 'shared connections'
const OWN = 'a connection each'
const MANY = { SERVICE_CLIENTS__DEFAULT__MAX_CONNECTIONS: `${CONNECTIONS}` }
/** Where no caller may wait for a connection, no connection is shared. */
const NO_SHARING = { ...MANY, SERVICE_CLIENTS__DEFAULT__MAX_WAITING: '0' }

const bodyOf = (id: number) => ({
  table_name: 'bench_rows',
  conditions: [{ operator: 'eq', column: 'id', value: id }],
})
const idAt = (turn: number): number => ids[turn % ids.length] ?? 1

await withFixture((sharing) => withFixture((alone) => compare(sharing, alone), NO_SHARING), MANY)

async function compare(sharing: Fixture, alone: Fixture): Promise<void> {
  console.log(`reads by key · ${sharing.describes} · ${CALLERS} callers · ${ROUNDS} rounds`)
  await show('control database, inside the process', await controlRates(sharing.databaseUrl), 1.2)
  await show('gateway, inside the process', await gatewayRates(sharing.databaseUrl), 1.1)
  const loader = startLoader()
  const http = { [SHARED]: overHttp(loader, sharing), [OWN]: overHttp(loader, alone) }
  await show('POST /gateway/fetch', await interleaved(http, ROUNDS), 1.05)
  await loader.end()
}

async function controlRates(url: string) {
  const shared = { url, statementTimeout: 5_000, maxWaiting: 1_000, alarm: createAlarm() }
  const pipelined = createPipelinedStatements({ ...shared, count: 2 })
  const pool = createPool({ ...shared, name: 'bench', max: CONNECTIONS, onError: () => {} })
  const statement = preparedStatement<{ id: number }>('select * from public.bench_rows where id = $1')
  try {
    return await interleaved(
      {
        [SHARED]: readsPerSecond(async (id) => (await pipelined.query(statement, [id]))[0]?.id),
        [OWN]: readsPerSecond(async (id) => (await pool.query({ ...statement, values: [id] })).rows[0]?.id),
      },
      ROUNDS,
    )
  } finally {
    await Promise.all([pipelined.close(), pool.end()])
  }
}

async function gatewayRates(url: string) {
  const drivers = [1_000, 0].map((maxWaiting) =>
    openGatewayDriver(url, { maxConnections: CONNECTIONS, maxWaiting }),
  )
  const reads = drivers.map((driver) =>
    readsPerSecond(async (id) => {
      const request = readFetch(bodyOf(id), { limits: ORDINARY_LIMITS })
      const answer = await driver.select(await driver.plan(request, EVERY_RIGHT))
      for await (const _chunk of answer.json);
      return answer.facts().rows === 1 ? id : undefined
    }),
  )
  try {
    const [shared, own] = reads as [Way, Way] // one for each driver
    return await interleaved({ [SHARED]: shared, [OWN]: own }, ROUNDS)
  } finally {
    await Promise.all(drivers.map((driver) => driver.close()))
  }
}

function overHttp(loader: Loader, { url, headers }: Fixture): Way {
  const requests = ids.map((id) => ({
    method: 'POST',
    path: '/gateway/fetch',
    body: JSON.stringify(bodyOf(id)),
  }))
  const load = { url, headers, requests, connections: CALLERS }
  return async () => {
    const { done, failed, seconds } = await loader.perform({ load, seconds: SECONDS })
    if (failed > 0) throw new Error(`${failed} requests failed`)
    return done / seconds
  }
}

function readsPerSecond(read: (id: number) => Promise<number | undefined>): Way {
  return async () => {
    const end = performance.now() + MILLISECONDS
    let reads = 0
    const caller = async () => {
      while (performance.now() < end) {
        const id = idAt(reads++)
        if ((await read(id)) !== id) throw new Error(`row ${id} was not read`)
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, caller))
    return (reads * 1_000) / MILLISECONDS
  }
}

async function show(what: string, rates: Awaited<ReturnType<typeof interleaved>>, atLeast: number) {
  console.log(`\n${what}`)
  printRates(rates, { unit: 'reads per second', against: [OWN] })
  printTarget(rates, SHARED, OWN, atLeast)
}
