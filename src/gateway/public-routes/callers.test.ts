import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADMIN_KEY, actor, testService } from '#test/harness.ts'
import { createRoutes } from '#test/public-routes.ts'
import { whileArriving } from '#test/slow-body.ts'

const { t, sql, route, change, stranger } = await createRoutes()
const OPS = ['query', 'fetch', 'insert', 'update', 'delete'] as const
type Op = (typeof OPS)[number]

const BODIES: Readonly<Record<Op, object>> = {
  query: { params: [2] },
  fetch: { limit: 1 },
  insert: { insert_body: { id: 900, title: 'New' }, on_conflict: 'id' },
  update: { set: { genre: 'x' }, where: { id: 999 } },
  delete: { where: { id: 999 } },
}
const ALL = { allowed_ops: [...OPS], query: 'select title from book where id = $1::int' }

test('a route asks for a key with the right of the operation, or for none', async () => {
  const [keyed, free] = [await route({ ...ALL, requires_key: true }), await route(ALL)]
  await t.admin.post('/admin/clients', { client_name: 'other', url: t.clientUrl })
  const inactive = await t.key(['*'])
  await t.admin.send('PATCH', `/admin/api-keys/${inactive.keyId}`, { body: { is_active: false } })
  const kinds = {
    'no key': stranger,
    'wrong key': actor(t.url, { apikey: 'svc_0123456789abcdef.wrong' }),
    'inactive key': actor(t.url, inactive.headers),
    'key of another client': await t.key(['*'], { client_name: 'other' }),
    'key of any client': await t.key(['*'], { client_name: null }),
    'key without rights': await t.key(['unrelated.read']),
    'key that reads': await t.key(['book.read']),
    'key that writes': await t.key(['book.write', 'book.read']),
    'key that deletes': await t.key(['book.delete', 'book.read']),
    'key for SQL': await t.key(['gateway.query']),
    'key for reading SQL': await t.key(['gateway.query.read']),
    'admin key': actor(t.url, { apikey: ADMIN_KEY }),
  }
  const refusals: Readonly<Record<string, string>> = {
    'no key': 'api_key_required',
    'wrong key': 'invalid_api_key',
    'inactive key': 'inactive_api_key',
    'key of another client': 'api_key_client_mismatch',
  }
  const granted: Readonly<Record<string, readonly Op[]>> = {
    'key of any client': OPS,
    'admin key': OPS,
    'key that reads': ['fetch'],
    'key that writes': ['fetch', 'insert', 'update'],
    'key that deletes': ['fetch', 'delete'],
    'key for SQL': ['query'],
    'key for reading SQL': ['query'],
  }
  for (const [kind, { headers }] of Object.entries(kinds)) {
    // The header of the client names no other one: the route has its own.
    const who = actor(t.url, { ...headers, 'x-service-client': 'nowhere' })
    for (const op of OPS) {
      const isGranted = granted[kind]?.includes(op) === true
      const expected = isGranted ? undefined : (refusals[kind] ?? 'insufficient_rights')
      const answer = await who.post(`/public/${keyed}/${op}`, BODIES[op])
      assert.equal(answer.body.code, expected, `${op} with ${kind}: ${answer.text}`)
      // A key that the route does not ask for is not looked at.
      const open = await who.post(`/public/${free}/${op}`, BODIES[op])
      assert.equal(open.status, 200, `${op} with ${kind}: ${open.text}`)
    }
  }
})

test('a keyed route without a table takes the table of the body, with the rights of the key', async () => {
  const fixed = { conditions: [{ eq_column: 'is_public', eq_value: true }], columns: ['id'] }
  const key = await route({ ...fixed, requires_key: true, table_name: null, allowed_ops: ['fetch'] })
  const reader = await t.key(['book.read'])
  const body = { table_name: 'book', limit: 10, sort_by: { field: 'id' } }
  const found = await reader.post(`/public/${key}/fetch`, body)
  assert.deepEqual(found.body.data, [{ id: 1 }, { id: 3 }])
  const other = await reader.post(`/public/${key}/fetch`, { table_name: 'author' })
  assert.equal(other.body.code, 'insufficient_rights')
  assert.equal((await reader.post(`/public/${key}/fetch`, {})).body.code, 'missing_table')
})

test('the SQL of a route is fixed: a body gives its values only', async () => {
  const key = await route({
    ...ALL,
    query: `select title from book where id = $1::int and genre is distinct from $2`,
  })
  const call = (body: unknown) => stranger.post(`/public/${key}/query`, body)
  const found = await call({ params: [2, null] })
  assert.deepEqual(
    [found.body.data, found.body.message, found.body.meta.returned_row_count],
    [[{ title: 'Two' }], 'Query executed', 1],
  )
  assert.deepEqual((await call({ params: ['2', "'; drop table book; --"] })).body.data, [{ title: 'Two' }])
  for (const [body, status, code] of [
    [{}, 400, 'invalid_sql'],
    [{ params: [1] }, 400, 'invalid_sql'],
    [{ params: [1, 2, 3] }, 400, 'invalid_sql'],
    [{ params: { id: 1 } }, 400, 'validation_error'],
    [{ params: [1, 2], query: 'select 1' }, 403, 'outside_route'],
    [{ params: [1, 2], schema_name: 'pg_catalog' }, 403, 'outside_route'],
    [{ params: ['x', null] }, 422, 'invalid_value'],
  ] as const) {
    const answer = await call(body)
    assert.deepEqual(
      [answer.status, answer.body.code],
      [status, code],
      `${JSON.stringify(body)} ${answer.text}`,
    )
    assert.doesNotMatch(answer.text, /select|book|genre|integer/)
  }

  const writes = await route({
    ...ALL,
    query: 'update book set genre = $2 where id = $1 returning id, genre',
  })
  const written = await stranger.post(`/public/${writes}/query`, { params: [3, 'essay'] })
  assert.deepEqual([written.body.data, written.body.meta.rows_affected], [[{ id: 3, genre: 'essay' }], 1])
  await change(writes, { requires_key: true })
  const reader = await t.key(['gateway.query.read'])
  const refused = await reader.post(`/public/${writes}/query`, { params: [3, 'x'] })
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_rights'])
  assert.deepEqual(await sql('select genre from book where id = 3'), [{ genre: 'essay' }])
})

test('a change of the record counts for a body that is still arriving, also from another process', async () => {
  const second = await testService({ controlUrl: t.controlUrl })
  const changes: Readonly<
    Record<string, readonly [change: (key: string) => Promise<unknown>, status: number]>
  > = {
    inactive: [
      (key) => second.admin.send('PATCH', `/admin/public-routes/${key}`, { body: { is_active: false } }),
      403,
    ],
    removed: [(key) => second.admin.send('DELETE', `/admin/public-routes/${key}`), 404],
    keyed: [
      (key) => second.admin.send('PATCH', `/admin/public-routes/${key}`, { body: { requires_key: true } }),
      401,
    ],
  }
  const before = await sql('select * from book order by id')
  const bodies = {
    ...BODIES,
    insert: { insert_body: { id: 950, title: 'Late' } },
    update: { set: { genre: 'late' }, where: { id: 1 } },
  }
  for (const [what, [happens, status]] of Object.entries(changes)) {
    for (const op of OPS) {
      const key = await route({ ...ALL, query: 'update book set genre = $1 where id < 3' })
      assert.equal((await stranger.post(`/public/${key}/fetch`, {})).status, 200)
      const body = op === 'query' ? { params: ['late'] } : bodies[op]
      const answer = await whileArriving(t.url, { path: `/public/${key}/${op}`, headers: {}, body }, () =>
        happens(key),
      )
      assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `), `${op} ${what}: ${answer}`)
    }
  }
  // The conditions are those of the record at the end of the body.
  const key = await route({ allowed_ops: ['update'] })
  const request = {
    path: `/public/${key}/update`,
    headers: {},
    body: { set: { genre: 'late' }, where: { id: 1 } },
  }
  const narrowed = await whileArriving(t.url, request, () =>
    second.admin.send('PATCH', `/admin/public-routes/${key}`, {
      body: { conditions: [{ eq_column: 'id', eq_value: 2 }] },
    }),
  )
  assert.match(narrowed, /"affected_rows":0/)

  const keyed = await route({ allowed_ops: ['update'], requires_key: true })
  const writer = await t.key(['book.*'])
  const revoked = await whileArriving(
    t.url,
    {
      path: `/public/${keyed}/update`,
      headers: writer.headers,
      body: { set: { genre: 'late' }, where: { id: 1 } },
    },
    () => second.admin.send('DELETE', `/admin/api-keys/${writer.keyId}`),
  )
  assert.match(revoked, /^HTTP\/1.1 401 /)
  assert.deepEqual(await sql('select * from book order by id'), before)
})

test('the rate limit of a route holds for all processes, and does not count what another route gets', async () => {
  const key = await route({ allowed_ops: ['fetch'], rate_limit: { requests: 4, window_seconds: 600 } })
  const other = await route({ allowed_ops: ['fetch'], rate_limit: { requests: 4, window_seconds: 600 } })
  const second = await testService({ controlUrl: t.controlUrl })
  const others = actor(second.url, {})
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, at) =>
      (at % 2 === 0 ? stranger : others).post(`/public/${key}/fetch`, {}),
    ),
  )
  assert.equal(answers.filter(({ status }) => status === 429).length, 6)
  const refused = answers.find(({ status }) => status === 429)
  assert.equal(refused?.body.code, 'too_many_requests')
  assert.ok(Number(refused?.headers.get('retry-after')) > 500)
  assert.equal((await stranger.post(`/public/${other}/fetch`, {})).status, 200)
  // Counted requests stay counted when the limit changes.
  await change(key, { rate_limit: { requests: 100, window_seconds: 600 } })
  assert.equal((await stranger.post(`/public/${key}/fetch`, {})).status, 200)
})

test('an address tries few unknown keys, also by preflights', async () => {
  const rules = { default: { requests: 3, window: 600_000 } }
  const limited = await testService({
    controlUrl: t.controlUrl,
    config: { rate_limits: { enabled: true, rules } },
  })
  const anyone = actor(limited.url, { origin: 'https://shop.example.com' })
  const statuses = async (method: string, count: number) => {
    const ask = () => anyone.send(method, '/public/unknown/fetch', { body: {} })
    return (await Promise.all(Array.from({ length: count }, ask))).map(({ status }) => status).sort()
  }
  assert.deepEqual(await statuses('OPTIONS', 5), [405, 405, 405, 429, 429])
  assert.deepEqual(await statuses('POST', 2), [429, 429])
})

test('pages of the route’s origins may call it, without cookies', async () => {
  const origin = 'https://shop.example.com'
  const key = await route({ allowed_ops: ['fetch'], allowed_origins: [origin] })
  const preflight = (path: string, from: string) =>
    stranger.send('OPTIONS', path, {
      headers: {
        origin: from,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type',
      },
    })
  const allowed = await preflight(`/public/${key}/fetch`, origin)
  assert.deepEqual(
    [
      allowed.status,
      ...['allow-origin', 'allow-methods', 'allow-headers', 'allow-credentials'].map((name) =>
        allowed.headers.get(`access-control-${name}`),
      ),
    ],
    [204, origin, 'POST', 'content-type', null],
  )
  for (const [path, from] of [
    [`/public/${key}/fetch`, 'https://evil.example.com'],
    [`/public/${key}/fetch`, 'null'],
    ['/public/nothing/fetch', origin],
    ['/gateway/fetch', origin],
  ] as const) {
    const answer = await preflight(path, from)
    assert.ok(answer.status >= 400, `${path} ${answer.status}`)
    assert.equal(answer.headers.get('access-control-allow-origin'), null)
  }
  const foreign = await preflight(`/public/${key}/fetch`, 'https://evil.example.com')
  assert.deepEqual(
    [foreign.status, foreign.body.code, foreign.headers.get('allow')],
    [405, 'method_not_allowed', 'POST'],
  )
  assert.match(foreign.body.error, /allowed_origins of the route/)
  const absent = await preflight('/public/nothing/fetch', origin)
  assert.deepEqual({ ...absent.body, request_id: '' }, { ...foreign.body, request_id: '' })
  const read = await stranger.post(`/public/${key}/fetch`, {}, { headers: { origin } })
  assert.deepEqual(
    [read.status, read.headers.get('access-control-allow-origin'), read.headers.get('vary')],
    [200, origin, 'Origin'],
  )
  const refused = await stranger.post(`/public/${key}/insert`, {}, { headers: { origin } })
  assert.deepEqual([refused.status, refused.headers.get('access-control-allow-origin')], [403, origin])
  await change(key, { allowed_origins: ['*'] })
  const any = await stranger.post(
    `/public/${key}/fetch`,
    {},
    { headers: { origin: 'https://any.example.com' } },
  )
  assert.equal(any.headers.get('access-control-allow-origin'), 'https://any.example.com')
  assert.equal(any.headers.get('access-control-allow-credentials'), null)
})

test('a body that is missing, broken or too long is refused', async () => {
  const key = await route({ allowed_ops: ['fetch', 'insert'] })
  assert.equal((await stranger.send('POST', `/public/${key}/fetch`)).status, 200)
  assert.equal((await stranger.post(`/public/${key}/fetch`, undefined, { raw: '[1]' })).status, 400)
  assert.equal((await stranger.post(`/public/${key}/fetch`, undefined, { raw: '{' })).status, 400)
  const long = `{"columns": "${'x'.repeat(1_100_000)}"}`
  assert.equal((await stranger.post(`/public/${key}/fetch`, undefined, { raw: long })).status, 413)
  const insert = await stranger.post(`/public/${key}/insert`, undefined, {
    raw: `{"insert_body": {"id": 960, "title": "${'x'.repeat(1_100_000)}"}}`,
  })
  assert.equal(insert.status, 200)
})
