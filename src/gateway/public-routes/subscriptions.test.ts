import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import { actor } from '#test/harness.ts'
import { createRoutes } from '#test/public-routes.ts'

const { t, sql, route, change, stranger } = await createRoutes()
const admin = await t.key(['*'])
await sql(
  'create table shelf (name text, place int, is_public boolean default true, primary key (place, name))',
)
for (const table of ['book', 'shelf']) {
  const enabled = await admin.send('PUT', `/management/tables/${table}/realtime`, { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
}
const SHOWN = {
  allowed_ops: ['fetch', 'subscribe'],
  columns: ['id', 'title'],
  conditions: [{ eq_column: 'is_public', eq_value: true }],
}
type Headers = Readonly<Record<string, string>>

const subscribe = (key: string, body?: object, headers: Headers = {}): Promise<EventStream> =>
  openStream(`${t.url}/public/${key}/subscribe`, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    ...(body !== undefined && { body }),
  })
const begun = async (...given: Parameters<typeof subscribe>): Promise<EventStream> => {
  const stream = await subscribe(...given)
  await stream.next('ready')
  return stream
}
const fetched = async (key: string, body: object = {}) =>
  (await stranger.post(`/public/${key}/fetch`, { sort_by: { field: 'id' }, ...body })).body.data

test('a subscriber is sent the rows of a fetch through the route, and every change of them', async () => {
  const key = await route(SHOWN)
  const stream = await subscribe(key)
  assert.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
  const rows = await fetched(key)
  assert.deepEqual((await stream.next()).data, { table: key, rows })
  await stream.next('ready')
  await sql(
    `insert into book values (20, 'Shown', null, false, 'h20'), (21, 'New', null, true, 'h21'), (22, 'Hidden', null, false, 'h22')`,
  )
  const added = await stream.next()
  assert.deepEqual([added.name, added.data], [
    'change',
    { table: key, op: 'insert', key: { id: 21 }, row: { id: 21, title: 'New' } },
  ]) // biome-ignore format: short
  await sql('update book set is_public = not is_public where id in (20, 21)')
  const told = [await stream.next(), await stream.next()]
  assert.deepEqual(told.map(({ name, data }) => [name, data.key.id]).toSorted(), [
    ['change', 20],
    ['leave', 21],
  ])
  await sql('delete from book where id >= 20')
  assert.deepEqual((await stream.next()).data.key, { id: 20 })
  // Of what the route hides, neither values nor keys, nor the name of the table.
  assert.doesNotMatch(JSON.stringify([stream.seen, stream.lastId()]), /Hidden|h2\d|secret|book/)
  assert.equal(pageOf(stream, key).size, (await fetched(key)).length)
  stream.close()
})

test('a body asks for less than the route opens, and never for more', async () => {
  const key = await route(SHOWN)
  const few = { columns: ['title'], conditions: { operator: 'gt', column: 'id', value: 1 } }
  const stream = await begun(key, few)
  assert.deepEqual(stream.seen[0]?.data.rows, await fetched(key, few))
  await sql(`insert into book values (30, 'Wide', null, true, 'h30')`)
  assert.deepEqual((await stream.next('change')).data.row, { title: 'Wide' })
  stream.close()
  const quiet = await begun(key, { snapshot: false })
  await sql('delete from book where id = 30')
  assert.deepEqual([(await quiet.next()).data, quiet.seen.length], [{ table: key, key: { id: 30 } }, 2])
  quiet.close()
  for (const [body, status, code] of [
    [{ columns: ['secret'] }, 400, 'unknown_column'],
    [{ conditions: { eq_column: 'secret', eq_value: 's2' } }, 400, 'unknown_column'],
    [{ conditions: { operator: 'eq', column: 'id', value: '1', column_cast: 'text' } }, 403, 'outside_route'],
    [{ columns: ['id', 'author(id)'] }, 403, 'outside_route'],
    [{ schema_name: 'public' }, 403, 'outside_route'],
    [{ table_name: 'author' }, 403, 'outside_route'],
  ] as const) {
    const asked = await stranger.post(`/public/${key}/subscribe`, body)
    const fetch = await stranger.post(`/public/${key}/fetch`, body)
    assert.deepEqual([asked.status, asked.body.code], [status, code], asked.text)
    assert.deepEqual([fetch.status, fetch.body.code], [status, code], fetch.text)
  }
})

test('a stream that cannot be is refused before it begins, and tells nothing of the table', async () => {
  const [none, dead, keyless] = [
    await route({ allowed_ops: ['fetch'] }),
    await route({ allowed_ops: ['subscribe'], table_name: 'entry' }),
    await route({ allowed_ops: ['subscribe'], table_name: 'shelf', columns: ['name'] }),
  ]
  for (const [path, status, code] of [
    [`${none}/subscribe`, 403, 'operation_not_allowed'],
    [`${dead}/subscribe`, 400, 'not_live'],
    [`${keyless}/subscribe`, 400, 'not_live'],
    [`${keyless}/subscribe?api_key=${admin.apiKey}`, 400, 'key_in_query'],
    ['nowhere/subscribe', 404, 'public_route_not_found'],
  ] as const) {
    const refused = await stranger.get(`/public/${path}`)
    assert.deepEqual([refused.status, refused.body.code], [status, code], refused.text)
    assert.doesNotMatch(refused.text, /shelf|entry|place/)
  }
})

test('a route asks its subscribers for a key with the right to read, all the time', async () => {
  const key = await route({ ...SHOWN, requires_key: true })
  const [reader, writer] = [await t.key(['book.read']), await t.key(['shelf.read'])]
  for (const [who, status, code] of [
    [stranger, 401, 'api_key_required'],
    [actor(t.url, { apikey: 'svc_0123456789abcdef.wrong' }), 401, 'invalid_api_key'],
    [writer, 403, 'insufficient_rights'],
  ] as const) {
    const refused = await who.post(`/public/${key}/subscribe`, {})
    assert.deepEqual([refused.status, refused.body.code], [status, code], refused.text)
  }
  const stream = await begun(key, undefined, reader.headers)
  const gone = await t.admin.send('DELETE', `/admin/api-keys/${reader.keyId}`)
  assert.equal(gone.status, 200)
  await sql(`update book set title = 'Late' where id = 1`)
  await stream.ended
  assert.deepEqual(stream.seen.at(-1)?.data, { reason: 'key_revoked' })
  assert.ok(!stream.seen.some(({ name }) => name === 'change'))
  await sql(`update book set title = 'One' where id = 1`)
})

test('a route that is changed, disabled or removed ends its streams before anything more is sent', async () => {
  const changes: Readonly<Record<string, (key: string) => Promise<{ readonly status: number }>>> = {
    inactive: (key) => change(key, { is_active: false }),
    'other operations': (key) => change(key, { allowed_ops: ['fetch'] }),
    'fewer columns': (key) => change(key, { columns: ['id'] }),
    'other conditions': (key) => change(key, { conditions: [{ eq_column: 'id', eq_value: 2 }] }),
    'another table': (key) => change(key, { table_name: 'shelf', columns: null }),
    keyed: (key) => change(key, { requires_key: true }),
    removed: (key) => t.admin.send('DELETE', `/admin/public-routes/${key}`),
  }
  for (const [what, happens] of Object.entries(changes)) {
    const key = await route(SHOWN)
    const stream = await begun(key)
    assert.equal((await happens(key)).status, 200, what)
    await sql(`update book set title = 'Later' where id = 1`)
    await stream.ended
    assert.match(stream.seen.at(-1)?.name ?? '', /^(?:reset|end)$/, what)
    assert.doesNotMatch(JSON.stringify(stream.seen), /Later/, what)
    await sql(`update book set title = 'One' where id = 1`)
  }
})

test('a subscriber who comes back goes on, or begins again where it is not known what the page shows', async () => {
  const key = await route(SHOWN)
  const first = await begun(key)
  const lastId = first.lastId() ?? assert.fail()
  first.close()
  await sql(`insert into book values (40, 'Hidden', null, false, 'h40'), (41, 'New', null, true, 'h41')`)
  const again = await begun(key, undefined, { 'last-event-id': lastId })
  const hasTold = (name: string) => () =>
    again.seen.some((event) => event.name === name && event.data.key.id === 41)
  await eventually(hasTold('change'))
  await sql('delete from book where id >= 40')
  await eventually(hasTold('leave'))
  assert.ok(!again.seen.some(({ name }) => name === 'reset' || name === 'snapshot'))
  assert.doesNotMatch(JSON.stringify(again.seen), /Hidden|"id":40/)
  const late = await begun(key, undefined, { 'last-event-id': lastId })
  assert.deepEqual(
    late.seen.map(({ name }) => name),
    ['reset', 'snapshot', 'ready'],
  )
  for (const stream of [again, late]) stream.close()
})

test('routes with other conditions share no events', async () => {
  const [shown, hidden] = [
    await route(SHOWN),
    await route({ ...SHOWN, conditions: [{ eq_column: 'is_public', eq_value: false }] }),
  ]
  const streams = [await begun(shown), await begun(hidden), await begun(shown)]
  for (let id = 50; id < 56; id++)
    await sql(`insert into book values (${id}, 'No. ${id}', null, ${id % 2 === 0}, 'h${id}')`)
  for (const [index, stream] of streams.entries()) {
    const key = index === 1 ? hidden : shown
    const rows = JSON.stringify(await fetched(key))
    const page = () => [...pageOf(stream, key).values()].toSorted((one, other) => one.id - other.id)
    await eventually(() => JSON.stringify(page()) === rows)
    const told = stream.seen.flatMap(({ name, data }) => (name === 'change' ? [data.key.id] : []))
    const own = told.filter((id) => id >= 50).map((id) => id % 2)
    assert.deepEqual(new Set(own), new Set([index === 1 ? 1 : 0]))
  }
  for (const stream of streams) stream.close()
  await sql('delete from book where id >= 50')
})

test('a stream is one request for the rate limit of its route, whatever it is sent', async () => {
  const key = await route({ ...SHOWN, rate_limit: { requests: 1, window_seconds: 3_600 } })
  const stream = await begun(key)
  for (let id = 60; id < 63; id++) {
    await sql(`insert into book values (${id}, 'No. ${id}', null, true, 'h${id}')`)
    assert.equal((await stream.next('change')).data.key.id, id)
  }
  assert.equal((await stranger.get(`/public/${key}/subscribe`)).status, 429)
  stream.close()
  await sql('delete from book where id >= 60')
})

test('pages of the origins of a route may follow it', async () => {
  const origin = 'https://shop.example.com'
  const key = await route({ ...SHOWN, allowed_origins: [origin] })
  const stream = await begun(key, undefined, { origin })
  assert.equal(stream.headers['access-control-allow-origin'], origin)
  stream.close()
  const asks = { origin, 'access-control-request-method': 'GET' }
  const preflight = await stranger.send('OPTIONS', `/public/${key}/subscribe`, { headers: asks })
  assert.deepEqual(
    [preflight.status, preflight.headers.get('access-control-allow-methods')],
    [204, 'POST, GET, HEAD'],
  )
})
