import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { connect } from '#client/connection.ts'
import { type LiveRequest, type LiveState, openLive } from '#client/live/open-live.ts'
import { eventually } from '#test/embedded.ts'
import { liveTables } from '#test/live-tables.ts'
import { createCutConnections } from '../cut-connections.ts'

const { t, key, sql, ddl, liveTable, fetched, insert } = await liveTables('select')

type Row = Record<string, unknown>

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

function followed(request: LiveRequest, headers: () => Record<string, string> = () => ({ ...key.headers })) {
  const states: LiveState<Row>[] = []
  const connections = createCutConnections()
  const { fetch } = connections
  const connection = { ...connect({ url: t.url, fetch }), headers: async () => headers() }
  const close = openLive<Row>(connection, request, (state) => void states.push(state))
  open.push(close)
  const last = () => states.at(-1) ?? assert.fail('nothing was told')
  return {
    ...connections,
    states,
    close,
    last,
    shows: (...rows: readonly Row[]) =>
      eventually(() => JSON.stringify(states.at(-1)?.rows) === JSON.stringify(rows)).catch(() =>
        assert.deepEqual(last().rows, rows),
      ),
    is: (status: LiveState<Row>['status'], code?: string) =>
      eventually(() => states.at(-1)?.status === status && states.at(-1)?.error?.code === code).catch(() =>
        assert.deepEqual([last().status, last().error?.code], [status, code]),
      ),
  }
}

test('rows are loading, then live, and each change is told with a new list', async () => {
  const table = await liveTable()
  await insert(table, { id: 1, title: 'Emma', pages: 400 })
  const page = followed({ table_name: table, columns: ['id', 'title'] })
  await page.is('live')
  assert.deepEqual(page.states, [
    { rows: [], status: 'loading', error: undefined },
    { rows: [{ id: 1, title: 'Emma' }], status: 'live', error: undefined },
  ])
  await insert(table, { id: 2, title: 'Sanditon', pages: 90 })
  await page.shows({ id: 1, title: 'Emma' }, { id: 2, title: 'Sanditon' })
  await sql(`update ${table} set title = 'Emma Woodhouse' where id = 1; delete from ${table} where id = 2`)
  await page.shows({ id: 1, title: 'Emma Woodhouse' })
  assert.equal(new Set(page.states.map(({ rows }) => rows)).size, page.states.length)
})

test('conditions and columns without the key hold for changes, too', async () => {
  const table = await liveTable()
  await insert(table, [
    { id: 1, title: 'Emma', pages: 400 },
    { id: 2, title: 'Emma', pages: 90 },
  ])
  const conditions = { operator: 'gt', column: 'pages', value: 100 }
  const page = followed({ table_name: table, columns: ['title', 'id:pages'], conditions })
  await page.shows({ title: 'Emma', id: 400 })
  await sql(`update ${table} set pages = 101 where id = 2`)
  await eventually(() => page.last().rows.length === 2)
  await sql(`update ${table} set pages = 102 where id = 2; update ${table} set pages = 1 where id = 1`)
  await page.shows({ title: 'Emma', id: 102 })
})

test('after a break the stream is resumed by the id of its last event, and misses nothing', async () => {
  const table = await liveTable('id int primary key, n int')
  await insert(table, { id: 1, n: 1 })
  const page = followed({ table_name: table })
  await page.is('live')
  page.setOffline(true)
  await page.is('stale', 'network')
  assert.deepEqual(page.last().rows, [{ id: 1, n: 1 }])
  await sql(`update ${table} set n = 2 where id = 1; insert into ${table} values (2, 2)`)
  page.setOffline(false)
  await page.shows({ id: 1, n: 2 }, { id: 2, n: 2 })
  await page.is('live')
  assert.equal(page.asked[0]?.get('last-event-id'), null)
  assert.ok(page.asked.at(-1)?.get('last-event-id'))
  // Only what had changed was sent.
  assert.ok(page.states.every(({ rows, status }) => status === 'loading' || rows.length > 0))
})

test('after a reset the rows of a new snapshot replace the others at once', async () => {
  const table = await liveTable('id int primary key, text text')
  // More than one piece of a snapshot.
  const text = 'x'.repeat(30_000)
  await insert(
    table,
    Array.from({ length: 9 }, (_, id) => ({ id, text })),
  )
  const page = followed({ table_name: table })
  await page.is('live')
  await ddl(`alter table ${table} add column n int`)
  await eventually(() => page.last().rows.length === 9 && 'n' in (page.last().rows[0] ?? {}))
  await page.is('live')
  assert.deepEqual(new Set(page.states.map(({ rows }) => rows.length)), new Set([0, 9]))
  assert.ok(page.states.some(({ status, rows }) => status === 'stale' && rows.length === 9))
  assert.deepEqual(page.last().rows, await fetched(table))
})

test('nothing is told after it is closed, by the function or the signal', async () => {
  const table = await liveTable()
  const page = followed({ table_name: table })
  await page.is('live')
  page.close()
  const leaving = new AbortController()
  const told: unknown[] = []
  const connection = { ...connect({ url: t.url }), headers: async () => ({ ...key.headers }) }
  openLive(connection, { table_name: table }, (state) => told.push(state), { signal: leaving.signal })
  await eventually(() => told.length === 2)
  leaving.abort()
  openLive(connection, { table_name: table }, (state) => told.push(state), { signal: leaving.signal })
  const other = followed({ table_name: table })
  await other.is('live')
  await insert(table, { id: 1, title: 'Emma', pages: 400 })
  await eventually(() => other.last().rows.length === 1)
  assert.deepEqual([page.states.length, told.length], [2, 2])
})

test('a refusal ends it with the error of the service', async () => {
  const table = await liveTable()
  const unknown = followed({ table_name: table, columns: ['id', 'titel'] })
  await unknown.is('stale', 'unknown_column')
  assert.equal(unknown.last().error?.status, 400)
  const keyless = followed({ table_name: table }, () => ({ 'x-service-client': 'default' }))
  await keyless.is('stale', 'api_key_required')
  assert.equal(keyless.asked.length, 1)
})

test('limits, pages and relations are refused', async () => {
  const table = await liveTable()
  const limited = followed({ table_name: table, limit: 10 } as LiveRequest)
  await limited.is('stale', 'not_live')
  assert.equal(limited.last().error?.message, 'Live rows take no limit')
  assert.equal(limited.asked.length, 0)
  const related = followed({ table_name: table, columns: ['id', 'authors(name)'] })
  await eventually(() => related.states.at(-1)?.error !== undefined)
  assert.equal(related.last().error?.status, 400)
})

test('a key that is revoked ends it, and another key that the client has by then goes on', async () => {
  const table = await liveTable()
  const [old, next] = [await t.key(['gateway.*']), await t.key(['gateway.*'])]
  let current = old
  const fixed = followed({ table_name: table }, () => ({ ...old.headers }))
  const renewed = followed({ table_name: table }, () => ({ ...current.headers }))
  for (const page of [fixed, renewed]) await page.is('live')
  current = next
  assert.equal((await t.admin.send('DELETE', `/admin/api-keys/${old.keyId}`)).status, 200)
  await fixed.is('stale', 'stream_ended')
  assert.deepEqual(fixed.last().error?.details, { reason: 'key_revoked' })
  await insert(table, { id: 1, title: 'Emma', pages: 400 })
  await renewed.shows({ id: 1, title: 'Emma', pages: 400 })
  assert.deepEqual([fixed.asked.length, renewed.asked.length], [1, 2])
})
