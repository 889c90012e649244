import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import pg from 'pg'
import { type Answer, actor, controlDatabase, testService } from '#test/harness.ts'
import { whileArriving } from '#test/slow-body.ts'

const controlUrl = await controlDatabase()
const t = await testService({ controlUrl })
/** Simulates another process of the same service, with a different database for client `default`. */
const otherProcess = await testService({ controlUrl })

before(async () => {
  for (const url of [t.clientUrl, otherProcess.clientUrl]) {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('create table notes (id int primary key)')
    await client.end()
  }
})

const issue = (body: Record<string, unknown> = {}) =>
  t.admin.post('/admin/api-keys', { name: 'test', client_name: 'default', rights: ['notes.*'], ...body })
async function issued(body: Record<string, unknown> = {}): Promise<{ key: string; id: string }> {
  const { data } = (await issue(body)).body
  return { key: data.api_key, id: data.record.id }
}
const change = (id: string, body: Record<string, unknown>) =>
  t.admin.send('PATCH', `/admin/api-keys/${id}`, { body })
const use = (key: string, service = t) =>
  actor(service.url, { apikey: key, 'x-service-client': 'default' }).post('/gateway/fetch', {
    table_name: 'notes',
  })
const refusal = ({ status, body }: Answer) => [status, body.code ?? 'ok']
/** Statuses of a request with this key in both processes. */
const everywhere = async (key: string) => [refusal(await use(key, otherProcess)), refusal(await use(key, t))]
const both = (status: number, code: string) => [
  [status, code],
  [status, code],
]

test('a key is shown once, and its secret is not stored', async () => {
  const answer = await issue({
    description: 'for reports',
    expires_at: '2100-01-01T00:00:00Z',
    client_overrides: ['other'],
  })
  assert.equal(answer.status, 201)
  const { api_key, record } = answer.body.data
  assert.match(api_key, /^svc_[0-9a-f]{16}\.[A-Za-z0-9_-]{43}$/)
  const [publicPart, secret] = api_key.split('.')
  assert.deepEqual(record, {
    id: record.id,
    public_id: publicPart.slice(4),
    name: 'test',
    description: 'for reports',
    client_name: 'default',
    rights: ['notes.*'],
    client_overrides: ['other'],
    is_active: true,
    expires_at: '2100-01-01T00:00:00.000Z',
    last_used_at: null,
    created_at: record.created_at,
    created_by: null,
    updated_at: record.created_at,
  })
  assert.deepEqual(refusal(await use(api_key)), [200, 'ok'])
  const shown = [
    await t.admin.get('/admin/api-keys'),
    await t.admin.get(`/admin/api-keys/${record.id}`),
    await change(record.id, { name: 'x' }),
  ]
  for (const { text } of shown) assert.ok(!text.includes(secret) && !/salt|hash|previous/.test(text), text)
  const rows = await t.service.kernel.db.selectFrom('apiKey').selectAll().execute()
  assert.ok(!JSON.stringify(rows).includes(secret))
})

test('a key is issued only with valid rights, and with management rights only if bound to a client', async () => {
  const refused: readonly (readonly [Record<string, unknown>, string])[] = [
    [{ rights: ['notes.select'] }, 'invalid_right'],
    [{ rights: ['notes.read', ''] }, 'invalid_right'],
    [{ rights: ['gateway.everything'] }, 'invalid_right'],
    [{ rights: ['management.read'], client_name: null }, 'invalid_right'],
    [{ rights: ['management.*'], client_name: null }, 'invalid_right'],
    [{ rights: 'notes.read' }, 'validation_error'],
    [{ rights: Array(501).fill('a.read') }, 'validation_error'],
    [{ rights: '["a\\u0000.read"]' }, 'validation_error'],
    [{ name: '' }, 'validation_error'],
    [{ name: undefined }, 'validation_error'],
    [{ expires_at: 'tomorrow' }, 'validation_error'],
    [{ expires_at: '2026-12-31T23:59:60Z' }, 'validation_error'],
  ]
  for (const [body, code] of refused) {
    const answer = await issue(body)
    assert.deepEqual([answer.status, answer.body.code], [400, code], JSON.stringify(body))
  }
  assert.equal(
    (await issue({ client_name: null, rights: ['*'] })).status,
    201,
    'an unbound key may have a wildcard, which then does not include management rights',
  )
})

test('a change takes effect in every process before the response', async () => {
  const { key, id } = await issued()
  assert.deepEqual(await everywhere(key), both(200, 'ok'))
  await change(id, { rights: ['other.read'] })
  assert.deepEqual(await everywhere(key), both(403, 'insufficient_rights'))
  await change(id, { rights: ['notes.read'], client_name: 'elsewhere' })
  assert.deepEqual(await everywhere(key), both(403, 'api_key_client_mismatch'))
  await change(id, { client_name: null })
  assert.deepEqual(await everywhere(key), both(200, 'ok'))
  await change(id, { is_active: false })
  assert.deepEqual(await everywhere(key), both(401, 'inactive_api_key'))
  await change(id, { is_active: true })
  assert.deepEqual(await everywhere(key), both(200, 'ok'))
})

test('a change affects only the given fields, with the same validation as issuing', async () => {
  const { id } = await issued({ description: 'stays', expires_at: '2100-01-01T00:00:00Z' })
  const { data } = (await change(id, { name: 'renamed' })).body
  assert.deepEqual(
    [data.name, data.description, data.client_name, data.rights, data.expires_at],
    ['renamed', 'stays', 'default', ['notes.*'], '2100-01-01T00:00:00.000Z'],
  )
  assert.equal((await change(id, { expires_at: null })).body.data.expires_at, null)
  assert.equal((await change(id, { rights: ['nonsense'] })).body.code, 'invalid_right')
  await change(id, { rights: ['management.read'] })
  assert.equal(
    (await change(id, { client_name: null })).body.code,
    'invalid_right',
    'a key with management rights was unbound',
  )
  for (const member of ['id', 'public_id', 'salt', 'secret_hash', 'created_at', 'publicId', 'secretHash']) {
    await change(id, { [member]: '2000-01-01T00:00:00Z' })
  }
  assert.deepEqual((await t.admin.get(`/admin/api-keys/${id}`)).body.data.public_id, data.public_id)
})

test('a revoked key is rejected in every process before the response', async () => {
  for (let round = 0; round < 25; round++) {
    const { key, id } = await issued()
    assert.deepEqual(await everywhere(key), both(200, 'ok'))
    assert.equal((await t.admin.send('DELETE', `/admin/api-keys/${id}`)).status, 200)
    assert.deepEqual(await everywhere(key), both(401, 'invalid_api_key'), `round ${round}`)
    assert.equal((await t.admin.get(`/admin/api-keys/${id}`)).body.code, 'api_key_not_found')
  }
})

test('a key that is changed while the body arrives is checked again', async () => {
  const outcome = async (key: { key: string; id: string }, happen: () => Promise<unknown>) => {
    const headers = { apikey: key.key, 'x-service-client': 'default' }
    const body = { table_name: 'notes', insert_body: { id: 1 } }
    const answer = await whileArriving(otherProcess.url, { path: '/gateway/insert', headers, body }, happen)
    return [answer.slice(9, 12), /"code":"(\w+)"/.exec(answer)?.[1]]
  }
  const revoked = await issued()
  assert.deepEqual(await outcome(revoked, () => t.admin.send('DELETE', `/admin/api-keys/${revoked.id}`)), [
    '401',
    'invalid_api_key',
  ])
  const narrowed = await issued()
  assert.deepEqual(await outcome(narrowed, () => change(narrowed.id, { rights: ['notes.read'] })), [
    '403',
    'insufficient_rights',
  ])
  const rotated = await issued()
  assert.deepEqual(await outcome(rotated, () => t.admin.post(`/admin/api-keys/${rotated.id}/rotate`, {})), [
    '401',
    'invalid_api_key',
  ])
  assert.deepEqual((await use((await issued()).key)).body.data, [])
})

test('an expired key is rejected at once, and works again when its expiry is extended', async () => {
  const soon = new Date(t.service.kernel.now().getTime() + 60_000)
  const { key, id } = await issued({ expires_at: soon.toISOString() })
  assert.deepEqual(refusal(await use(key)), [200, 'ok'])
  t.advance(61_000)
  assert.deepEqual(refusal(await use(key)), [401, 'expired_api_key'])
  await change(id, { expires_at: null })
  assert.deepEqual(refusal(await use(key)), [200, 'ok'])
  const { key: past } = await issued({ expires_at: '2001-01-01T00:00:00Z' })
  assert.deepEqual(refusal(await use(past)), [401, 'expired_api_key'])
})

test("a wrong secret for an inactive or expired key does not reveal the key's state", async () => {
  const { key, id } = await issued({ expires_at: '2001-01-01T00:00:00Z' })
  const wrong = `${key.split('.')[0]}.${'A'.repeat(43)}`
  assert.deepEqual(refusal(await use(wrong)), [401, 'invalid_api_key'])
  await change(id, { is_active: false })
  assert.deepEqual(refusal(await use(wrong)), [401, 'invalid_api_key'])
})

const rotate = (id: string, body: Record<string, unknown> = {}) =>
  t.admin.post(`/admin/api-keys/${id}/rotate`, body)

test('a rotation gives a key a new secret; without grace the old secret is rejected in every process', async () => {
  const { key, id } = await issued()
  await everywhere(key)
  const { api_key: next, record } = (await rotate(id)).body.data
  assert.equal(next.split('.')[0], key.split('.')[0])
  assert.equal(record.id, id)
  assert.deepEqual(await everywhere(key), both(401, 'invalid_api_key'))
  assert.deepEqual(await everywhere(next), both(200, 'ok'))
})

test('with grace the old secret works until it ends, and no longer than one rotation', async () => {
  const { key, id } = await issued()
  await everywhere(key)
  const { api_key: second } = (await rotate(id, { grace_seconds: 60 })).body.data
  assert.deepEqual(await everywhere(key), both(200, 'ok'))
  assert.deepEqual(await everywhere(second), both(200, 'ok'))

  const { api_key: third } = (await rotate(id, { grace_seconds: 60 })).body.data
  assert.deepEqual(await everywhere(key), both(401, 'invalid_api_key'), 'two rotations ago')
  assert.deepEqual(await everywhere(second), both(200, 'ok'))
  t.advance(61_000)
  assert.deepEqual(refusal(await use(second)), [401, 'invalid_api_key'])
  assert.deepEqual(refusal(await use(third)), [200, 'ok'])

  const { api_key: fourth } = (await rotate(id)).body.data
  assert.deepEqual(
    [refusal(await use(third)), refusal(await use(fourth))],
    [
      [401, 'invalid_api_key'],
      [200, 'ok'],
    ],
  )
  for (const grace_seconds of [-1, 2_592_001, 1.5, 'soon'])
    assert.equal((await rotate(id, { grace_seconds })).status, 400)
})

test('the list is paged and sorted, and can be filtered by client', async () => {
  const name = `page-${Date.now()}`
  const made: string[] = []
  for (let index = 0; index < 5; index++) made.push((await issued({ client_name: name, rights: [] })).id)
  const ids = async (query: string) => {
    const { data } = (await t.admin.get(`/admin/api-keys?client_name=${name}&${query}`)).body
    return data.api_keys.map(({ id }: { id: string }) => id)
  }
  assert.deepEqual(await ids(''), made)
  assert.deepEqual(await ids('limit=2'), made.slice(0, 2))
  assert.deepEqual(await ids('limit=2&offset=4'), made.slice(4))
  for (const query of ['limit=0', 'limit=1001', 'offset=-1', 'limit=x']) {
    assert.equal((await t.admin.get(`/admin/api-keys?${query}`)).body.code, 'validation_error', query)
  }
})

test('an unknown id gets 404, an invalid id 400', async () => {
  const unknownId = '01900000-0000-7000-8000-000000000000'
  const asks = [
    () => t.admin.get(`/admin/api-keys/${unknownId}`),
    () => change(unknownId, { name: 'x' }),
    () => t.admin.send('DELETE', `/admin/api-keys/${unknownId}`),
    () => rotate(unknownId),
  ]
  for (const ask of asks) assert.deepEqual(refusal(await ask()), [404, 'api_key_not_found'])
  assert.deepEqual(refusal(await t.admin.get('/admin/api-keys/17')), [400, 'validation_error'])
})

test('without the key store all keys are rejected', async () => {
  const broken = await testService()
  const { apiKey } = await broken.key(['*'])
  await broken.service.kernel.db.schema.alterTable('apiKey').renameTo('awayKey').execute()
  const answer = await use(apiKey, broken)
  assert.deepEqual(refusal(answer), [503, 'api_key_validation_unavailable'])
  assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal((await broken.admin.get('/clients')).status, 200, 'the admin key needs no store')
})

test('the catalogue names every fixed right', async () => {
  const { data } = (await t.admin.get('/admin/rights/catalog')).body
  const names = data.rights.map(({ right }: { right: string }) => right)
  for (const right of ['gateway.read', 'management.read', 'management.tables.write'])
    assert.ok(names.includes(right))
  for (const { right, description } of data.rights) {
    assert.ok(description.length > 3)
    assert.equal((await issue({ rights: [right] })).status, 201, right)
  }
})
