import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { actor, testService } from '#test/harness.ts'

const t = await testService()
const { kernel } = t.service

const issued = async (body: Record<string, unknown>) => {
  const answer = await t.admin.post('/admin/api-keys', { client_name: 'default', rights: [], ...body })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.data as { api_key: string; record: { id: string; public_id: string } }
}
const listed = async (query: Record<string, string>) => {
  const answer = await t.admin.get(`/admin/api-keys?${new URLSearchParams(query)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.data.api_keys.map(({ name }: { name: string }) => name) as string[]
}
const lastUse = async (id: string) =>
  (await t.admin.get(`/admin/api-keys/${id}`)).body.data.last_used_at as string | null
const use = (key: string) =>
  actor(t.url, { apikey: key, 'x-service-client': 'default' }).post('/gateway/fetch', { table_name: 'none' })

test('the last use of a key is noted to the minute, and a wrong secret is no use', async () => {
  const { api_key: key, record } = await issued({ name: 'used', rights: ['none.read'] })
  await use(`${key.split('.')[0]}.${'A'.repeat(43)}`)
  assert.equal(await lastUse(record.id), null)
  const began = kernel.now().getTime()
  await use(key)
  await eventually(async () => (await lastUse(record.id)) !== null)
  const first = await lastUse(record.id)
  assert.ok(Date.parse(first ?? '') >= began)
  t.advance(30_000)
  await use(key)
  t.advance(31_000)
  await use(key)
  await eventually(async () => (await lastUse(record.id)) !== first)
  assert.ok(Date.parse((await lastUse(record.id)) ?? '') >= began + 61_000)
})

test('a use changes no copy of the key in another process', async () => {
  const { api_key: key, record } = await issued({ name: 'quiet', rights: ['none.read'] })
  const cleared: string[] = []
  kernel.coherence.subscribe({ apply: (tag) => void cleared.push(tag), clear: () => undefined })
  await use(key)
  await eventually(async () => (await lastUse(record.id)) !== null)
  await kernel.coherence.settle()
  assert.ok(!cleared.includes(`api_key:${record.public_id}`))
})

test('keys are found by a part of the name or by the public part, and by their state', async () => {
  const soon = new Date(kernel.now().getTime() + 60_000).toISOString()
  const { record } = await issued({ name: 'Find-Me 50%', client_name: 'reports', expires_at: soon })
  await issued({ name: 'find_me too', client_name: 'reports' })
  assert.deepEqual(await listed({ search: 'find-me' }), ['Find-Me 50%'])
  assert.deepEqual(await listed({ search: '50%' }), ['Find-Me 50%'])
  assert.deepEqual(await listed({ search: `svc_${record.public_id}` }), ['Find-Me 50%'])
  const of = { client_name: 'reports', sort: 'name' }
  assert.deepEqual((await listed({ ...of, state: 'active' })).length, 2)
  t.advance(61_000)
  assert.deepEqual(await listed({ ...of, state: 'expired' }), ['Find-Me 50%'])
  await t.admin.send('PATCH', `/admin/api-keys/${record.id}`, { body: { is_active: false } })
  assert.deepEqual(await listed({ ...of, state: 'inactive' }), ['Find-Me 50%'])
  assert.deepEqual(await listed({ ...of, state: 'active' }), ['find_me too'])
  assert.equal((await t.admin.get('/admin/api-keys?state=odd')).body.code, 'validation_error')
})

test('keys are sorted by name, expiry or last use; what was never used comes first', async () => {
  const client = { client_name: 'sorted' }
  await issued({ ...client, name: 'b', expires_at: '2100-01-01T00:00:00Z' })
  const { record } = await issued({ ...client, name: 'A', expires_at: '2099-01-01T00:00:00Z' })
  await issued({ ...client, name: 'c' })
  await kernel.db.insertInto('apiKeyUse').values({ keyId: record.id, lastUsedAt: kernel.now() }).execute()
  const sorted = async (sort: string, direction = 'asc') =>
    (await listed({ ...client, sort, direction })).join('')
  assert.equal(await sorted('name'), 'Abc')
  assert.equal(await sorted('name', 'desc'), 'cbA')
  assert.equal(await sorted('expires_at'), 'Abc')
  assert.equal(await sorted('last_used_at'), 'bcA')
  assert.equal(await sorted('last_used_at', 'desc'), 'Acb')
})

const reach = async (body: Record<string, unknown>) => {
  const { status, body: answer, text } = await t.admin.post('/admin/rights/resolve', body)
  assert.equal(status, 200, text)
  return answer.data.reach.map(
    ({ operations, ...rest }: { operations: readonly { right: string; description: string }[] }) => {
      assert.ok(operations.every(({ description }) => description.length > 3))
      return { ...rest, operations: operations.map(({ right }) => right) }
    },
  )
}
const REACHED = { through: 'requests', is_known: true, has_row_level_security: false }

test('rights are resolved to clients, tables and operations', async () => {
  const rights = ['orders.*', 'sales.bills.read', '*.read', 'users.write', 'gateway.query.read']
  assert.deepEqual(await reach({ rights, client_name: 'default' }), [
    {
      ...{ ...REACHED, client_name: 'default', every_table: ['read'] },
      tables: [
        { table: 'orders', actions: ['write', 'delete'] },
        { table: 'users', actions: ['write'] },
      ],
      operations: ['gateway.query.read'],
    },
  ])
  const [everything] = await reach({ rights: ['*'], client_name: 'default', client_overrides: [] })
  assert.deepEqual(everything.every_table, ['read', 'write', 'delete'])
  assert.ok(everything.operations.includes('management.tables.drop'))
  assert.ok(!everything.operations.includes('gateway.bypass_row_level_security'))
  const [unbound] = await reach({ rights: ['*'] })
  assert.deepEqual([unbound.client_name, unbound.has_row_level_security], [null, null])
  assert.ok(!unbound.operations.some((right: string) => right.startsWith('management.')))
  assert.equal((await reach({ rights: [], client_name: 'nothing' }))[0].is_known, false)
})

test('pipelines of a key reach further clients, whose rows they read and write', async () => {
  const rights = ['pipelines.run', 'orders.*', 'bills.delete', 'gateway.query']
  const asked = { rights, client_name: 'default' }
  const further = {
    ...{ ...REACHED, through: 'pipelines', every_table: [], operations: [] },
    tables: [{ table: 'orders', actions: ['read', 'write'] }],
  }
  const all = await reach(asked)
  assert.deepEqual(all[1], { ...further, client_name: null, has_row_level_security: null })
  const named = await reach({ ...asked, client_overrides: ['reports', 'default'] })
  assert.deepEqual(named.slice(1), [{ ...further, client_name: 'reports', is_known: false }])
  assert.equal((await reach({ ...asked, rights: ['orders.*'] })).length, 1)
})

test('what is no right, and what is no name of a client, is refused', async () => {
  const refused = async (body: object) => (await t.admin.post('/admin/rights/resolve', body)).body.code
  assert.equal(await refused({ rights: ['orders.select'] }), 'invalid_right')
  assert.equal(await refused({ rights: ['management.read'] }), 'invalid_right')
  assert.equal(await refused({ rights: [], client_name: 'no name' }), 'validation_error')
})
