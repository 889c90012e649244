import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import { type Actor, actor, testService } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const { t, sql, users, admin, createTable, secured } = await createSecuredTables()
await createTable('note', [USER, TEXT])
await secured('note', [{ preset: 'owner', column: 'user_id' }])
const live = await admin.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
assert.equal(live.status, 200, live.text)

const as = (token?: string): Actor =>
  actor(t.url, token === undefined ? {} : { 'x-service-auth-session-token': token })
const CALLERS = { ada: as(users.ada.token), bea: as(users.bea.token), stranger: as() }
const SHOWN = [{ eq_column: 'text', eq_value: 'shown' }]
const ROUTES = {
  all: {},
  shown: { conditions: SHOWN },
  owned: { run_as: 'owner' },
  'owned-shown': { run_as: 'owner', conditions: SHOWN },
}
type Told = { readonly user_id: string; readonly text: string }

for (const [route_key, facts] of Object.entries(ROUTES)) {
  const fixed = { client_name: 'app', table_name: 'note', requires_key: false }
  const route = { route_key, ...fixed, allowed_ops: ['fetch', 'subscribe'], ...facts }
  const made = await t.admin.post('/admin/public-routes', route)
  assert.equal(made.status, 201, made.text)
}

const sorted = (rows: Iterable<object>): string =>
  JSON.stringify(
    [...rows].toSorted((one, other) => (one as { id: number }).id - (other as { id: number }).id),
  )

/** The policies and the record let this caller see the row through this route. */
const mayBe = (who: keyof typeof CALLERS, route: string, { user_id, text }: Told): boolean =>
  (route.startsWith('owned') || (who !== 'stranger' && user_id === users[who].id)) &&
  (!route.endsWith('shown') || text === 'shown')

test('through a route, every caller of a client with policies is sent what a fetch through it returns, and no other row', async () => {
  const streams: { who: keyof typeof CALLERS; route: string; stream: EventStream }[] = []
  for (const route of Object.keys(ROUTES))
    for (const who of Object.keys(CALLERS) as (keyof typeof CALLERS)[]) {
      const { headers } = CALLERS[who]
      const fetch = await CALLERS[who].post(`/public/${route}/fetch`, {})
      if (fetch.status !== 200) {
        const refused = await CALLERS[who].get(`/public/${route}/subscribe`)
        assert.deepEqual([refused.status, refused.body.code], [fetch.status, fetch.body.code])
        continue
      }
      const stream = await openStream(`${t.url}/public/${route}/subscribe`, { method: 'GET', headers })
      await stream.next('ready')
      streams.push({ who, route, stream })
    }
  assert.equal(streams.length, 10, 'the anonymous role may not read the table')
  const { ada, bea } = users
  for (const statement of [
    `insert into note (user_id, text) values ('${ada.id}', 'shown'), ('${bea.id}', 'shown'), ('${ada.id}', 'hidden'), ('${bea.id}', 'hidden')`,
    `update note set user_id = '${bea.id}' where user_id = '${ada.id}' and text = 'shown'`,
    `update note set text = case text when 'shown' then 'hidden' else 'shown' end where user_id = '${bea.id}'`,
    `insert into note (user_id, text) values ('${ada.id}', 'shown')`,
    `delete from note where user_id = '${bea.id}' and text = 'hidden'`,
  ]) {
    await sql(statement)
    for (const { who, route, stream } of streams) {
      const { data } = (await CALLERS[who].post(`/public/${route}/fetch`, {})).body
      await eventually(() => sorted(pageOf(stream, route).values()) === sorted(data))
    }
  }
  for (const { who, route, stream } of streams) {
    const known = new Set<number>()
    for (const { name, data } of stream.seen) {
      const rows = name === 'snapshot' ? data.rows : name === 'change' ? [data.row] : []
      for (const row of rows) {
        known.add(row.id)
        assert.ok(mayBe(who, route, row), `${who} ${route} ${JSON.stringify(row)}`)
      }
      if (name === 'leave') assert.ok(known.has(data.key.id), `${who} ${route} ${JSON.stringify(data)}`)
    }
    stream.close()
  }
})

test('a session that ends, and a route that leaves the decision to the policies, end a stream', async () => {
  const cleo = await t.signUp('Cleo')
  const headers = { 'x-service-auth-session-token': cleo.token }
  const own = await openStream(`${t.url}/public/all/subscribe`, { method: 'GET', headers })
  const owned = await openStream(`${t.url}/public/owned/subscribe`, { method: 'GET', headers })
  for (const stream of [own, owned]) await stream.next('ready')
  const out = await t.anon.post('/api/auth/sign-out', {}, { headers: { ...cleo.headers } })
  assert.equal(out.status, 200, out.text)
  await own.ended
  assert.deepEqual(own.seen.at(-1)?.data, { reason: 'session_ended' })
  const changed = await t.admin.send('PATCH', '/admin/public-routes/owned', { body: { run_as: 'caller' } })
  assert.equal(changed.status, 200, changed.text)
  await sql(`insert into note (user_id, text) values ('${users.ada.id}', 'later')`)
  await owned.ended
  assert.ok(!owned.seen.some(({ name }) => name === 'change'))
})

test('strangers of one route take half of the streams, and those of one address as many as are set', async () => {
  const few = await testService({ config: { limits: { streams: 6, streams_per_address: 4 } } })
  const key = await few.key(['*'])
  const ddl = await key.post('/gateway/query', { query: 'create table note (id int primary key)' })
  assert.equal(ddl.status, 200, ddl.text)
  const enabled = await key.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
  for (const route_key of ['one', 'two']) {
    const facts = {
      client_name: 'default',
      table_name: 'note',
      requires_key: false,
      allowed_ops: ['subscribe'],
    }
    assert.equal((await few.admin.post('/admin/public-routes', { route_key, ...facts })).status, 201)
  }
  const follow = (route: string) => openStream(`${few.url}/public/${route}/subscribe`, { method: 'GET' })
  const refusal = async (route: string) => {
    const { status, body } = await few.anon.get(`/public/${route}/subscribe`)
    return [status, body.code, body.data.details.setting]
  }
  const streams = [await follow('one'), await follow('one'), await follow('one')]
  assert.deepEqual(await refusal('one'), [429, 'too_many_streams', 'limits.streams'])
  streams.push(await follow('two'))
  assert.deepEqual(await refusal('two'), [429, 'too_many_streams', 'limits.streams_per_address'])
  for (const stream of streams) stream.close()
})
