import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { openStream } from '#test/event-stream.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { OURS } from '../sides.ts'
import { quantile } from '../statistics.ts'
import { call, liveSettings, makeLive, operatorKey } from '../streams.ts'
import type { Side, Work } from '../turns.ts'
import { addRoles } from './row-by-session.ts'

/** Changes of a turn. */
const CHANGES = 40
/** Milliseconds, over which the pauses between changes are spread: the service looks so often for writes past it. */
const POLL = 250
const TABLE = 'live_times'

/** Milliseconds from when a write is sent until its event has come, so that the commit lies in between. `parts`: p50 and p99 of the turn. */
const latency = (
  name: string,
  most: number,
  writerOf: (bench: Bench) => Promise<(n: number) => Promise<unknown>>,
): Scenario => ({
  title: `live rows, from a write ${name} to its event, p99`,
  unit: 'ms',
  target: { of: name, atMost: most },
  settings: liveSettings,
  async open(bench) {
    const { service } = bench
    await addRoles(bench)
    const headers = await operatorKey(service)
    await makeLive(service, headers, TABLE, 'id int primary key, n int')
    await service.sql(`insert into ${TABLE} values (1, 0)`)
    const write = await writerOf(bench)
    const stream = await openStream(`${service.url}/realtime`, {
      headers,
      body: { tables: [{ table_name: TABLE }] },
    })
    bench.after(async () => stream.close())
    await stream.next('ready')
    let n = 0
    const timeOfChange = async (): Promise<number> => {
      const mine = ++n
      const began = performance.now()
      const [{ data }] = await Promise.all([stream.next('change'), write(mine)])
      assert.equal(data.row.n, mine)
      return performance.now() - began
    }
    const work = async (): Promise<Work> => {
      const began = performance.now()
      const times: number[] = []
      for (let change = 0; change < CHANGES; change++) {
        // A fixed order in which each part of the interval comes.
        await sleep((change * 97) % POLL)
        times.push(await timeOfChange())
      }
      const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)]
      return {
        done: CHANGES,
        failed: 0,
        seconds: (performance.now() - began) / 1_000,
        load: 0,
        value: p99,
        parts: { p50, p99 },
      }
    }
    return [{ name, pid: service.pid, about: OURS, check: async () => {}, work }] satisfies readonly Side[]
  },
})

export const liveRowsThrough = latency('through the gateway', 50, async ({ service }) => {
  const headers = await operatorKey(service)
  return (n) => {
    const conditions = [{ column: 'id', value: 1 }]
    return call(service, headers, 'POST', '/gateway/update', { table_name: TABLE, set: { n }, conditions })
  }
})

export const liveRowsPast = latency('past the gateway', 300, async ({ service, after }) => {
  const client = new pg.Client({ connectionString: service.databaseUrl })
  await client.connect()
  after(() => client.end())
  return (n) => client.query(`update ${TABLE} set n = $1 where id = 1`, [n])
})
