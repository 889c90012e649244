import { setTimeout as sleep } from 'node:timers/promises'
import { openStream } from '#test/event-stream.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { OURS } from '../sides.ts'
import { call, holdStreams, liveSettings, makeLive, operatorKey, type Streams, usersOf } from '../streams.ts'
import type { Side } from '../turns.ts'
import { addRoles, ROLES } from './row-by-session.ts'

const COHORTS = [1, 100, 10_000]
const USERS = [100, 10_000]
/** Milliseconds in which every change of the structure is read. */
const SETTLED = 1_000
/** Behind a policy by membership. */
const MEMBERS = 100

type Headers = Readonly<Record<string, string>>
type Following = {
  readonly name: string
  readonly table: string
  readonly streams: readonly Headers[]
  /** Streams that are told of a change. */
  readonly told: number
  /** Rows, of which another one changes each time. */
  readonly rows: number
}

type Follow = (bench: Bench, operator: Headers) => Promise<readonly Following[]>

/** A row changes, through the gateway, as soon as all streams have been told of the last change. The cost is that of a change. */
const changes = (title: string, follow: Follow): Scenario => ({
  title: `live rows, a change for ${title}`,
  unit: 'changes per second',
  settings: liveSettings,
  async open(bench) {
    await addRoles(bench)
    const operator = await operatorKey(bench.service)
    const streams = holdStreams(bench)
    const sides: Side[] = []
    for (const following of await follow(bench, operator))
      sides.push(await sideOf(bench, operator, streams, following))
    return sides
  },
})

const fill = ({ service }: Bench, headers: Headers, query: string) =>
  call(service, headers, 'POST', '/gateway/query', { query })

/** Streams of one key, which share a reading. */
export const liveRowsOfCohort = changes('streams of one cohort', async (bench, operator) => {
  const list: Following[] = []
  for (const count of COHORTS) {
    const table = `live_${count}`
    await makeLive(bench.service, operator, table, 'id int primary key, n int, text text')
    await fill(bench, operator, `insert into ${table} values (1, 0, repeat('lorem ipsum ', 8))`)
    const name = count === 1 ? '1 stream' : `${count.toLocaleString('en')} streams`
    list.push({ name, table, streams: Array.from({ length: count }, () => operator), told: count, rows: 1 })
  }
  return list
})

export const liveRowsOfUsers = changes('different users', async (bench, operator) => [
  ...(await owners(bench, operator)),
  await members(bench, operator),
])

const COLUMNS = 'id int primary key, user_id uuid, n int, text text'

/** Each user has a row, and is told of its changes alone. */
async function owners(bench: Bench, operator: Headers): Promise<readonly Following[]> {
  const users = [...(await usersOf(bench.service, operator, Math.max(...USERS)))]
  const list: Following[] = []
  for (const count of USERS) {
    const table = `owned_${count}`
    const those = users.slice(0, count)
    await makeLive(bench.service, operator, table, COLUMNS)
    await secure(bench, operator, table, `user_id = (select ${CLAIM})`)
    const ids = those.map(([id]) => id).join()
    await fill(
      bench,
      operator,
      `insert into ${table} select i, id::uuid, 0, repeat('lorem ipsum ', 8) from unnest('{${ids}}'::text[]) with ordinality as u(id, i)`,
    )
    const streams = those.map(([, headers]) => headers)
    list.push({
      name: `${count.toLocaleString('en')} users, a row each`,
      table,
      streams,
      told: 1,
      rows: count,
    })
  }
  return list
}

/** The policy reads another table, so that each user is a cohort. All see the row. */
async function members(bench: Bench, operator: Headers): Promise<Following> {
  const table = 'shared'
  await makeLive(bench.service, operator, table, COLUMNS)
  await fill(bench, operator, 'create table joined (user_id uuid, team int, primary key (user_id, team))')
  await secure(bench, operator, 'joined', `user_id = ${CLAIM}`)
  await secure(bench, operator, table, `exists (select from joined j where j.user_id = ${CLAIM})`)
  const users = [...(await usersOf(bench.service, operator, MEMBERS, 'member'))]
  await fill(
    bench,
    operator,
    `insert into joined select id::uuid, 1 from unnest('{${users.map(([id]) => id).join()}}'::text[]) id;
     insert into ${table} values (1, null, 0, repeat('lorem ipsum ', 8))`,
  )
  const streams = users.map(([, headers]) => headers)
  return { name: `${MEMBERS} users of a team`, table, streams, told: MEMBERS, rows: 1 }
}

const CLAIM = `(nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid`

const secure = (bench: Bench, headers: Headers, table: string, using: string) =>
  fill(
    bench,
    headers,
    `alter table ${table} enable row level security; create policy shown on ${table} for select to ${ROLES.signedIn} using (${using});
     grant select on ${table} to ${ROLES.signedIn}`,
  )

async function sideOf(
  { service }: Bench,
  operator: Headers,
  held: Streams,
  { name, table, streams, told, rows }: Following,
): Promise<Side> {
  const body = { tables: [{ table_name: table }] }
  // It makes triggers on tables that policies read, at which streams begin again.
  const first = await openStream(`${service.url}/realtime`, { headers: streams[0] ?? {}, body })
  await first.next('ready')
  await sleep(SETTLED)
  first.close()
  await held.open(name, { url: service.url, body: JSON.stringify(body), headers: streams })
  let changes = 0
  return {
    name,
    pid: service.pid,
    about: OURS,
    check: async () => {},
    async work(seconds) {
      const began = performance.now()
      let [done, load] = [0, 0]
      while (performance.now() - began < seconds * 1_000) {
        changes++
        const conditions = [{ column: 'id', value: 1 + (changes % rows) }]
        await call(service, operator, 'POST', '/gateway/update', {
          table_name: table,
          set: { n: changes },
          conditions,
        })
        load += await held.told(name, changes * told)
        done++
      }
      return { done, failed: 0, seconds: (performance.now() - began) / 1_000, load }
    },
  }
}
