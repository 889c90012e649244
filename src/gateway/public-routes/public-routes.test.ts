import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { createRoutes } from '#test/public-routes.ts'

const { t, sql, route, change, stranger } = await createRoutes()
type Facts = Readonly<Record<string, unknown>>

test('a route is created, listed, changed and removed by the admin key only', async () => {
  const key = await route({ allowed_ops: ['fetch'], conditions: [{ eq_column: 'price', eq_value: 10 }] })
  const copy = { route_key: key, client_name: 'default', allowed_ops: ['fetch'] }
  const again = await t.admin.post('/admin/public-routes', copy)
  assert.deepEqual([again.status, again.body.code], [409, 'public_route_exists'])

  const changed = await change(key, { columns: ['id'], rate_limit: { requests: 5, window_seconds: 10 } })
  assert.equal(changed.status, 200)
  const { id, created_at, created_by, updated_at, ...record } = changed.body.data
  assert.deepEqual(record, {
    route_key: key,
    client_name: 'default',
    allowed_ops: ['fetch'],
    table_name: 'book',
    conditions: [{ eq_column: 'price', eq_value: 10 }],
    columns: ['id'],
    query: null,
    requires_key: false,
    run_as: 'caller',
    rate_limit: { requests: 5, window_seconds: 10 },
    allowed_origins: [],
    is_active: true,
    metadata: {},
  })
  const cleared = await change(key, { columns: null, rate_limit: null, conditions: null })
  assert.deepEqual(
    [cleared.body.data.columns, cleared.body.data.rate_limit, cleared.body.data.conditions],
    [null, { requests: 60, window_seconds: 60 }, null],
  )
  const listed = await t.admin.get('/admin/public-routes?limit=1&offset=0')
  assert.equal(listed.body.data.public_routes.length, 1)
  assert.deepEqual([listed.body.data.limit, listed.body.data.offset], [1, 0])
  assert.ok(listed.body.data.total >= 1)

  const owner = await t.key(['*'])
  for (const who of [stranger, owner]) {
    const status = who === stranger ? 401 : 403
    assert.equal((await who.get('/admin/public-routes')).status, status)
    assert.equal((await who.post('/admin/public-routes', copy)).status, status)
    assert.equal((await who.send('PATCH', `/admin/public-routes/${key}`, { body: {} })).status, status)
    assert.equal((await who.send('DELETE', `/admin/public-routes/${key}`)).status, status)
  }
  assert.equal((await t.admin.send('DELETE', `/admin/public-routes/${key}`)).status, 200)
  for (const method of ['DELETE', 'PATCH']) {
    const body = method === 'PATCH' ? { body: {} } : {}
    const gone = await t.admin.send(method, `/admin/public-routes/${key}`, body)
    assert.deepEqual([gone.status, gone.body.code], [404, 'public_route_not_found'])
  }
})

test('routes are found by client, state and a part of the key or table, and read one by one', async () => {
  const [one, other] = [await route({ allowed_ops: ['fetch'] }), await route({ allowed_ops: ['fetch'] })]
  await change(other, { is_active: false })
  const found = async (query: Record<string, string>) => {
    const { body } = await t.admin.get(`/admin/public-routes?${new URLSearchParams(query)}`)
    const keys = body.data.public_routes.map(({ route_key }: { route_key: string }) => route_key)
    assert.equal(body.data.total, keys.length)
    return keys
  }
  assert.deepEqual(await found({ search: one.toUpperCase() }), [one])
  assert.ok((await found({ search: 'BOO', is_active: 'false' })).includes(other))
  assert.ok(!(await found({ search: 'boo', is_active: 'true' })).includes(other))
  assert.deepEqual(await found({ client_name: 'none' }), [])
  const read = await t.admin.get(`/admin/public-routes/${other}`)
  assert.deepEqual([read.body.data.route_key, read.body.data.is_active], [other, false])
  const gone = await t.admin.get('/admin/public-routes/no-such-route')
  assert.deepEqual([gone.status, gone.body.code], [404, 'public_route_not_found'])
})

test('every digit of a number in the conditions is kept', async () => {
  await sql(`insert into book (id, title, secret, price) values (4, 'Long', 's4', 12345678901234567890.000000000000000001),
    (5, 'Near', 's5', 12345678901234567890.000000000000000002)`)
  const body = `{"route_key":"digits","client_name":"default","allowed_ops":["fetch"],"requires_key":false,"table_name":"book",
    "conditions":[{"eq_column":"price","eq_value":12345678901234567890.000000000000000001}]}`
  const created = await t.admin.post('/admin/public-routes', undefined, { raw: body })
  assert.match(created.text, /"eq_value":12345678901234567890\.000000000000000001/)
  const found = await stranger.post('/public/digits/fetch', { columns: ['title'] })
  assert.deepEqual(found.body.data, [{ title: 'Long' }])
  await sql('delete from book where id > 3')
})

test('metadata with a number that PostgreSQL cannot store is refused', async () => {
  const key = await route({ allowed_ops: ['fetch'] })
  const send = (method: string, path: string, rest: string) =>
    t.admin.send(method, path, {
      raw: `{${rest}}`,
      headers: { 'content-type': 'application/json' },
    })
  const registration = `"client_name": "noted", "driver": "postgresql", "url": ${JSON.stringify(t.clientUrl)}`
  const metadata = '{"a": 1e999999}'
  for (const { status, body } of [
    await send('PATCH', `/admin/public-routes/${key}`, `"metadata": ${metadata}`),
    await send('POST', '/admin/clients', `${registration}, "metadata": ${metadata}`),
  ])
    assert.deepEqual([status, body.data?.details.field], [400, 'metadata'])
})

test('a record that would open more than it fixes, or could not be called, is refused', async () => {
  const cases: readonly (readonly [Facts, number, string])[] = [
    [{ client_name: 'nowhere' }, 400, 'unknown_client'],
    [{ client_name: 'custom_supabase' }, 400, 'unknown_client'],
    [{ table_name: null }, 400, 'invalid_public_route'],
    [{ client_name: 'logging' }, 400, 'invalid_public_route'],
    [{ allowed_ops: ['query'] }, 400, 'invalid_public_route'],
    [{ allowed_ops: ['query', 'fetch'], query: 'select 1', table_name: null }, 400, 'invalid_public_route'],
    [{ allowed_ops: [] }, 400, 'validation_error'],
    [{ allowed_ops: ['drop'] }, 400, 'validation_error'],
    [{ conditions: [{ operator: 'near', column: 'id', value: 1 }] }, 400, 'invalid_condition'],
    [{ conditions: 'id = 1' }, 400, 'invalid_condition'],
    [{ table_name: 'a.b.c' }, 400, 'invalid_identifier'],
    [{ columns: [] }, 400, 'validation_error'],
    [{ rate_limit: { requests: 0, window_seconds: 60 } }, 400, 'validation_error'],
    [{ allowed_origins: ['example.com'] }, 400, 'invalid_public_route'],
    [{ allowed_origins: ['https://example.com/'] }, 400, 'invalid_public_route'],
    [{ route_key: 'Upper' }, 400, 'validation_error'],
    [{ route_key: '-dash' }, 400, 'validation_error'],
    [{ route_key: 'a'.repeat(64) }, 400, 'validation_error'],
    ...[
      'select 1; select 2',
      '',
      'begin',
      'set role postgres',
      'copy book to stdout',
      'select 1 into x',
      'drop table book',
    ].map((query): readonly [Facts, number, string] => [
      { query },
      400,
      query === '' ? 'validation_error' : 'invalid_sql',
    ]),
  ]
  const valid = {
    route_key: 'refused',
    client_name: 'default',
    allowed_ops: ['fetch'],
    requires_key: false,
    table_name: 'book',
  }
  for (const [facts, status, code] of cases) {
    const answer = await t.admin.post('/admin/public-routes', { ...valid, ...facts })
    assert.deepEqual(
      [answer.status, answer.body.code],
      [status, code],
      `${JSON.stringify(facts)} ${answer.text}`,
    )
  }
  assert.equal((await stranger.post('/public/refused/fetch', {})).status, 404)
  const { body: misnamed } = await t.admin.post('/admin/public-routes', { ...valid, route_key: 'my_route' })
  assert.equal(misnamed.message, 'route_key has an invalid form')
  assert.equal(misnamed.error, 'The name in the path: lower-case letters, digits and -, at most 63')

  // A change is judged with the rest of the record.
  const key = await route({ allowed_ops: ['fetch'] })
  assert.equal((await change(key, { table_name: null })).body.code, 'invalid_public_route')
  assert.equal((await change(key, { table_name: null, requires_key: true })).status, 200)
  assert.equal((await change(key, { requires_key: false })).body.code, 'invalid_public_route')
})

test('deeply nested SQL of a route does not break the parser for later routes', async () => {
  const facts = { route_key: 'deep', client_name: 'default', allowed_ops: ['query'], requires_key: true }
  const query = `select 1${'+1'.repeat(9_900)}`
  const answer = await t.admin.post('/admin/public-routes', { ...facts, query })
  // With this failure the parser is replaced.
  assert.deepEqual([answer.status, answer.body.error], [400, 'The text is nested too deep'])
  const later = await t.admin.post('/admin/public-routes', { ...facts, query: 'select 1' })
  assert.equal(later.status, 201, later.text)
})

test('a call names a route that exists, is active and allows the operation', async () => {
  const key = await route({ allowed_ops: ['fetch'] })
  const expected: readonly (readonly [string, number, string | undefined])[] = [
    [`/public/${key}/fetch`, 200, undefined],
    [`/public/${key}/peek`, 400, 'unknown_operation'],
    [`/public/${key}/FETCH`, 400, 'unknown_operation'],
    [`/public/${key}/insert`, 403, 'operation_not_allowed'],
    ['/public/nothing/fetch', 404, 'public_route_not_found'],
    ...[
      '..',
      '%2e%2e',
      "x'--",
      '%00',
      'a%2Fb',
      '%f0%9f',
      key.toUpperCase(),
      `${key}%20`,
      'x'.repeat(4_000),
      '__proto__',
      'constructor',
    ].map((name): readonly [string, number, string] => [
      `/public/${name}/fetch`,
      404,
      name === '..' || name === '%2e%2e' ? 'not_found' : 'public_route_not_found',
    ]),
  ]
  for (const [path, status, code] of expected) {
    const answer = await stranger.post(path, {})
    assert.deepEqual([answer.status, answer.body.code], [status, code], `${path} ${answer.text}`)
  }
  assert.equal((await change(key, { is_active: false })).status, 200)
  const inactive = await stranger.post(`/public/${key}/fetch`, {})
  assert.deepEqual([inactive.status, inactive.body.code], [403, 'route_inactive'])
  assert.equal((await stranger.get(`/public/${key}/fetch`)).status, 405)
})

test('a removed client closes its routes, also for a new client of the same name', async () => {
  const body = { client_name: 'second', url: t.clientUrl }
  assert.equal((await t.admin.post('/admin/clients', body)).status, 201)
  const key = await route({ client_name: 'second', allowed_ops: ['fetch'] })
  assert.equal((await stranger.post(`/public/${key}/fetch`, {})).status, 200)
  assert.equal(
    (await t.admin.send('PUT', '/admin/clients/second/freeze', { body: { is_frozen: true } })).status,
    200,
  )
  assert.equal((await stranger.post(`/public/${key}/fetch`, {})).status, 200)
  await change(key, { allowed_ops: ['fetch', 'delete'] })
  assert.equal(
    (await stranger.post(`/public/${key}/delete`, { where: { id: 1 } })).body.code,
    'client_frozen',
  )
  await t.admin.send('DELETE', '/admin/clients/second')
  assert.equal((await stranger.post(`/public/${key}/fetch`, {})).body.code, 'route_inactive')
  await t.admin.post('/admin/clients', body)
  assert.equal((await stranger.post(`/public/${key}/fetch`, {})).body.code, 'route_inactive')
})

test('conditions of a record outlast limits that were lowered later; new ones have to keep to them', async () => {
  const conditions = [
    { column: 'is_public', value: true },
    { or: [{ and: [{ not: { column: 'id', value: 3 } }] }] },
  ]
  const key = await route({ allowed_ops: ['fetch'], conditions })
  const strict = await testService({
    controlUrl: t.controlUrl,
    config: { limits: { conditions: 1, nesting: 1 } },
  })
  await withClient(strict.clientUrl, (client) =>
    client.query('create table book as select id, id < 9 as is_public from generate_series(1, 4) id'),
  )
  const found = await strict.anon.post(`/public/${key}/fetch`, { columns: ['id'], sort_by: { field: 'id' } })
  assert.deepEqual(
    found.body.data?.map(({ id }: { id: number }) => id),
    [1, 2, 4],
    found.text,
  )
  const url = `/admin/public-routes/${key}`
  const renamed = await strict.admin.send('PATCH', url, { body: { metadata: { a: 1 } } })
  assert.equal(renamed.status, 200, renamed.text)
  const refused = await strict.admin.send('PATCH', url, { body: { conditions } })
  assert.equal(refused.body.code, 'too_deep')
})
