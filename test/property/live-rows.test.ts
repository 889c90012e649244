import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Chooser, chooser } from '#test/chooser.ts'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import type { Actor } from '#test/harness.ts'
import { createSecuredTables } from '#test/secured-tables.ts'

/**
 * Writers of every kind beside readers with different rights. At each quiet point every page has the rows of a fetch of its user, and no event
 * has told a row that its user may not see, or a key that it had not been told before. `PROPERTY_RUNS=1000` plays more rounds, and PROPERTY_SEED the
 * choices of one again, though not its timing.
 */
const { t, sql, database, users, admin, adas, beas, stranger, roles } = await createSecuredTables()
const ROUNDS = Number(process.env.PROPERTY_RUNS ?? 1)
const SEED = Number(process.env.PROPERTY_SEED ?? 1)

const made = await admin.post('/gateway/query', {
  query: `create table team (user_id uuid, team int, primary key (user_id, team));
  create table doc (id int primary key, owner uuid, team int, n int, text text);
  alter table team enable row level security; alter table doc enable row level security;
  create policy own on team for select to ${roles.member}
    using (user_id = (nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid);
  create policy own on doc for select to ${roles.member}
    using (owner = (nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid
      or team in (select team from public.team));
  create table item (id int primary key, owner uuid, team int, n int, text text);
  alter table item enable row level security;
  create policy own on item for select to ${roles.member} using (owner =
    (select (nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid));
  create policy odd on doc for select to ${roles.anon} using (n % 2 = 1);
  grant select on team, doc, item to ${roles.member}; grant select on doc to ${roles.anon}`,
})
assert.equal(made.status, 200, made.text)
for (const table of ['doc', 'item']) {
  const body = { enabled: true }
  const enabled = await admin.send('PUT', `/management/tables/${table}/realtime`, { body })
  assert.equal(enabled.status, 200, enabled.text)
}

const { admin: operator } = t
const ROUTES = {
  large: { conditions: { operator: 'gt', column: 'n', value: 4 } },
  'large-of-all': { conditions: { operator: 'gt', column: 'n', value: 4 }, run_as: 'owner' },
}
for (const [route_key, facts] of Object.entries(ROUTES)) {
  const open = {
    allowed_ops: ['fetch', 'subscribe'],
    rate_limit: { requests: 1_000_000, window_seconds: 60 },
  }
  const fixed = { client_name: 'app', table_name: 'doc', requires_key: false }
  const route = await operator.post('/admin/public-routes', { route_key, ...fixed, ...open, ...facts })
  assert.equal(route.status, 201, route.text)
}

const OWNERS = [users.ada.id, users.bea.id]
const statement = ({ below, of }: Chooser): string => {
  const [id, n, owner, team] = [below(60), below(10), of(OWNERS), below(4)]
  const doc = of(['doc', 'item'])
  const kinds = [
    `insert into ${doc} values (${id}, '${owner}', ${team}, ${n}, 'inserted') on conflict do nothing`,
    `insert into ${doc} values (${id}, '${owner}', ${team}, ${n}, 'upserted') on conflict (id) do update set n = ${n}, owner = '${owner}'`,
    `update ${doc} set n = ${n}, text = 'updated' where id % 7 = ${below(7)}`,
    `update ${doc} set owner = '${owner}', team = ${team} where id = ${id}`,
    `update ${doc} set id = ${id + 60} where id = ${id} and not exists (select from ${doc} where id = ${id + 60})`,
    `delete from ${doc} where id % 9 = ${below(9)}`,
    `insert into team values ('${owner}', ${team}) on conflict do nothing`,
    `delete from team where user_id = '${owner}' and team = ${team}`,
  ]
  return below(60) === 0 ? `truncate ${doc}` : of(kinds)
}

/** A lost race between two writers changes nothing. */
const attempt = async (work: Promise<unknown>): Promise<void> => void (await work.catch(() => {}))

const WRITERS: readonly ((choose: Chooser) => Promise<void>)[] = [
  async (choose) => attempt(sql(statement(choose))),
  async (choose) => attempt(sql(`begin; ${statement(choose)}; ${statement(choose)}; commit`)),
  async (choose) => attempt(sql(`begin; ${statement(choose)}; rollback`)),
  async (choose) =>
    attempt(
      sql(
        `begin; ${statement(choose)}; savepoint s; ${statement(choose)}; rollback to s; ${statement(choose)}; commit`,
      ),
    ),
  async (choose) =>
    attempt(
      withClient(database.url, async (client) => {
        await client.query('begin')
        await client.query(statement(choose))
        for (let turns = choose.below(200); turns > 0; turns--) await turn()
        await client.query(statement(choose))
        await client.query('commit')
      }),
    ),
  async (choose) => {
    const body = {
      table_name: 'doc',
      set: { n: choose.below(10) },
      conditions: { eq_column: 'id', eq_value: choose.below(60) },
    }
    await admin.post('/gateway/update', body)
  },
]

type Follower = {
  readonly who: Actor
  readonly table?: string
  /** The public route that it comes by. */
  readonly route?: keyof typeof ROUTES
  readonly asked: object
  readonly mayBe: (row: { n: number; owner: string }) => boolean
  stream: EventStream
  hasComeBack?: boolean
}

const ODD = { operator: 'gt', column: 'n', value: 4 }
const FOLLOWERS: readonly Omit<Follower, 'stream'>[] = [
  { who: admin, asked: {}, mayBe: () => true },
  { who: admin, asked: { conditions: ODD }, mayBe: ({ n }) => n > 4 },
  { who: adas, asked: {}, mayBe: () => true },
  {
    who: adas,
    asked: { conditions: { eq_column: 'owner', eq_value: users.ada.id } },
    mayBe: ({ owner }) => owner === users.ada.id,
  },
  { who: beas, asked: {}, mayBe: () => true },
  { who: beas, asked: { conditions: ODD }, mayBe: ({ n }) => n > 4 },
  { who: stranger, asked: {}, mayBe: ({ n }) => n % 2 === 1 },
  { who: stranger, asked: {}, mayBe: ({ n }) => n % 2 === 1 },
  { who: admin, table: 'item', asked: {}, mayBe: () => true },
  { who: adas, table: 'item', asked: {}, mayBe: ({ owner }) => owner === users.ada.id },
  { who: beas, table: 'item', asked: {}, mayBe: ({ owner }) => owner === users.bea.id },
  {
    who: beas,
    table: 'item',
    asked: { conditions: ODD },
    mayBe: ({ owner, n }) => owner === users.bea.id && n > 4,
  },
  { who: adas, route: 'large', asked: {}, mayBe: ({ n }) => n > 4 },
  { who: stranger, route: 'large', asked: {}, mayBe: ({ n }) => n > 4 && n % 2 === 1 },
  { who: beas, route: 'large-of-all', asked: {}, mayBe: ({ n }) => n > 4 },
  { who: stranger, route: 'large-of-all', asked: { columns: ['id', 'n'] }, mayBe: ({ n }) => n > 4 },
]

function follow(
  { who, table = 'doc', route, asked }: Omit<Follower, 'stream'>,
  lastId?: string,
): Promise<EventStream> {
  const headers = { ...who.headers, ...(lastId !== undefined && { 'last-event-id': lastId }) }
  return route === undefined
    ? openStream(`${t.url}/realtime`, { headers, body: { tables: [{ table_name: table, ...asked }] } })
    : openStream(`${t.url}/public/${route}/subscribe`, { headers, body: asked })
}

/** Its connection breaks, and it comes back with the id of its last event. */
async function comeBack(follower: Follower): Promise<void> {
  const { stream } = follower
  if (stream.lastId() === undefined) await stream.next('ready')
  stream.close()
  await stream.ended
  const [before, next] = [stream.seen, await follow(follower, stream.lastId())]
  const seen = () => [...before, ...next.seen]
  follower.hasComeBack = true
  follower.stream = Object.defineProperty({ ...next }, 'seen', { get: seen })
}

const fetched = async ({ who, table = 'doc', route, asked }: Follower): Promise<readonly object[]> => {
  const path = route === undefined ? '/gateway/fetch' : `/public/${route}/fetch`
  const { data } = (await who.post(path, { ...(route === undefined && { table_name: table }), ...asked }))
    .body
  return data
}

const sorted = (rows: readonly object[]): string =>
  JSON.stringify(rows.toSorted((one, other) => (one as { id: number }).id - (other as { id: number }).id))

/** Every row that was told fits, and every key that leaves had come; or was sent when the connection broke. */
function expectOwn({ stream, mayBe, hasComeBack = false }: Follower): void {
  const known = new Set<number>()
  for (const { name, data } of stream.seen) {
    if (name === 'snapshot') for (const row of data.rows) known.add(row.id)
    if (name === 'snapshot') assert.ok(data.rows.every(mayBe))
    if (name === 'change') assert.ok(mayBe(data.row), JSON.stringify(data))
    if (name === 'change') known.add(data.key.id)
    if (name === 'leave') assert.ok(hasComeBack || known.has(data.key.id), JSON.stringify(data))
  }
}

for (let round = 0; round < ROUNDS; round++)
  test(`every page shows the rows of a fetch in the end: seed ${SEED + round}`, async () => {
    const choose = chooser(SEED + round)
    const followers: Follower[] = await Promise.all(
      FOLLOWERS.map(async (one) => ({ ...one, stream: await follow(one) })),
    )
    for (let burst = 0; burst < 4; burst++) {
      const writing = Array.from({ length: 6 }, async (_, index) => {
        for (let write = 0; write < 12; write++) await (WRITERS[index] ?? assert.fail())(choose)
      })
      const later: Omit<Follower, 'stream'> = { who: adas, asked: {}, mayBe: () => true }
      const stream = await follow(later)
      await Promise.all(followers.filter(() => choose.below(4) === 0).map(comeBack))
      await Promise.all(writing)
      followers.push({ ...later, stream })
      for (const follower of followers) {
        const { table = 'doc', route = table, stream } = follower
        const rows = sorted(await fetched(follower))
        const shown = () => sorted([...pageOf(stream, route).values()])
        await eventually(() => shown() === rows).catch(() => assert.equal(shown(), rows))
        expectOwn(follower)
      }
    }
    for (const { stream } of followers) stream.close()
  })
