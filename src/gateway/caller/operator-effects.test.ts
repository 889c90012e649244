import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVERY_RIGHT } from '#kernel/rights.ts'
import { backupPrograms } from '#test/audit/backup-causes.ts'
import { type Actor, type Answer, testService } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'

const gateway = { default: ['orders.read', 'orders.write'] }
const t = await testService({
  config: {
    auth: {
      admin: {
        roles: {
          routes: { operator: ['routes'], gateway },
          webhooks: { operator: ['webhooks'], gateway },
          clients: { operator: ['clients'], gateway: { default: ['*'] } },
          backups: { operator: ['backups'], gateway },
          restorer: { operator: ['backups'], gateway: { second: [...EVERY_RIGHT], '*': ['gateway.read'] } },
          lister: { user: ['list'] },
        },
      },
    },
    backups: { programs: await backupPrograms() },
  },
})
const registered = await t.admin.post('/admin/clients', { client_name: 'second', url: t.clientUrl })
assert.equal(registered.status, 201, registered.text)
const { db } = t.service.kernel

const holding = async (role: string): Promise<Actor> => byBearer(t, await operatorOf(t, role))

function assertRefused({ status, body, text }: Answer, right: string): void {
  assert.deepEqual([status, body?.code], [403, 'insufficient_rights'], text)
  assert.ok(body.data.details.required_rights.includes(right), text)
}

const ROUTE = { client_name: 'default', table_name: 'orders', allowed_ops: ['fetch'], requires_key: false }
const routes = () => db.selectFrom('publicRoute').selectAll().orderBy('routeKey').execute()

test('a session opens by a public route only what its roles have on the client and the table', async () => {
  const me = await holding('routes')
  for (const [route_key, allowed_ops] of [
    ['read', ['fetch']],
    ['written', ['fetch', 'insert', 'update']],
  ] as const) {
    const made = await me.post('/admin/public-routes', { ...ROUTE, route_key, allowed_ops })
    assert.equal(made.status, 201, made.text)
  }
  const theirs = { ...ROUTE, route_key: 'theirs', table_name: 'customers' }
  assert.equal((await t.admin.post('/admin/public-routes', theirs)).status, 201)
  const before = await routes()

  const beyond: readonly (readonly [more: object, right: string])[] = [
    [{ table_name: 'customers' }, 'customers.read'],
    [{ table_name: 'sales.orders' }, 'sales.orders.read'],
    [{ table_name: null, requires_key: true }, 'gateway.read'],
    [{ allowed_ops: ['fetch', 'delete'] }, 'orders.delete'],
    [{ allowed_ops: ['query'], query: 'select 1' }, 'gateway.query'],
    [{ client_name: 'second' }, 'orders.read'],
  ]
  for (const [more, right] of beyond) {
    assertRefused(await me.post('/admin/public-routes', { ...ROUTE, route_key: 'new', ...more }), right)
    assertRefused(await me.send('PATCH', '/admin/public-routes/read', { body: more }), right)
  }
  const change = (body: object) => me.send('PATCH', '/admin/public-routes/theirs', { body })
  for (const body of [{ metadata: { mine: true } }, { rate_limit: null }, { is_active: true }])
    assertRefused(await change(body), 'customers.read')
  // The rows that its callers send would come to a table that the session reads.
  assertRefused(await change({ table_name: 'orders' }), 'customers.read')
  assertRefused(await me.send('DELETE', '/admin/public-routes/theirs'), 'customers.read')
  assert.deepEqual(await routes(), before)

  assert.equal((await change({ is_active: false })).status, 200, 'closing it opens nothing')
  assertRefused(await change({ is_active: true }), 'customers.read')
  assert.equal((await me.send('DELETE', '/admin/public-routes/written')).status, 200)
})

const WEBHOOK = { route_key: 'gateway_insert', url: 'https://example.com/mine', table_name: 'orders' }
const webhooks = () => db.selectFrom('webhook').selectAll().orderBy('id').execute()

test('a session has rows sent by a webhook only where its roles read them', async () => {
  const me = await holding('webhooks')
  const mine = await me.post('/admin/webhooks', WEBHOOK)
  assert.equal(mine.status, 201, mine.text)
  const onDefault = { headers: { 'x-service-client': 'default' } }
  const theirs = await t.admin.post('/admin/webhooks', { ...WEBHOOK, table_name: 'customers' }, onDefault)
  assert.equal(theirs.status, 201, theirs.text)
  const before = await webhooks()

  const beyond: readonly (readonly [more: object, right: string])[] = [
    [{ table_name: 'customers' }, 'customers.read'],
    [{ table_name: null }, 'gateway.read'],
    [{ client_name: 'second' }, 'orders.read'],
  ]
  for (const [more, right] of beyond) {
    const answers = [
      await me.post('/admin/webhooks', { ...WEBHOOK, ...more }),
      await me.send('PATCH', `/admin/webhooks/${mine.body.data.id}`, { body: more }),
    ]
    for (const answer of answers) assertRefused(answer, right)
  }
  const change = (body: object) => me.send('PATCH', `/admin/webhooks/${theirs.body.data.id}`, { body })
  for (const body of [{ url: 'https://example.com/other' }, { filter: null }, { is_active: true }])
    assertRefused(await change(body), 'customers.read')
  assert.deepEqual(await webhooks(), before)

  const rotated = await me.post(`/admin/webhooks/${theirs.body.data.id}/rotate-secret`, {})
  assertRefused(rotated, 'customers.read')
  assert.deepEqual(await webhooks(), before, 'its secret signs what its receiver takes for events')
  assert.equal((await me.post(`/admin/webhooks/${mine.body.data.id}/rotate-secret`, {})).status, 200)

  assert.equal((await change({ is_active: false })).status, 200, 'stopping it sends nothing')
  assertRefused(await change({ is_active: true }), 'customers.read')
})

test('a webhook of accounts needs the permission to list users', async () => {
  const ofUsers = { route_key: 'auth_user_created', url: 'https://example.com/users' }
  const before = await webhooks()
  const me = await holding('webhooks')
  assertRefused(await me.post('/admin/webhooks', ofUsers), 'user: list')
  assert.deepEqual(await webhooks(), before)
  const made = await (await holding('webhooks,lister')).post('/admin/webhooks', ofUsers)
  assert.equal(made.status, 201, made.text)
  const path = `/admin/webhooks/${made.body.data.id}`
  assertRefused(await me.send('PATCH', path, { body: { url: 'https://example.com/mine' } }), 'user: list')
})

test('a session gives a client another address only with every right on it', async () => {
  const me = await holding('clients')
  const address = () =>
    db.selectFrom('databaseClient').selectAll().where('clientName', '=', 'second').executeTakeFirst()
  const before = await address()
  for (const body of [{ url: t.clientUrl }, { direct_url: t.clientUrl }, { driver: 'postgresql' }])
    assertRefused(await me.send('PATCH', '/admin/clients/second', { body }), '*')
  assert.deepEqual(await address(), before)
  const described = await me.send('PATCH', '/admin/clients/second', { body: { description: 'mine' } })
  assert.equal(described.status, 200, described.text)
  for (const url_env_var of ['MISSING', 'OF_ANOTHER'])
    assertRefused(await me.post('/admin/clients', { client_name: 'third', url_env_var }), '*')
  const made = await me.post('/admin/clients', { client_name: 'third', url: t.clientUrl })
  assert.equal(made.status, 201, 'the address is its own')
})

test('a session gives the name of a former client another address only with every right on it', async () => {
  const me = await holding('clients')
  const former = { client_name: 'former', url: t.clientUrl }
  assert.equal((await t.admin.post('/admin/clients', former)).status, 201)
  assert.equal((await me.send('DELETE', '/admin/clients/former')).status, 200)
  assertRefused(await me.post('/admin/clients', former), '*')
  assert.equal((await t.admin.post('/admin/clients', former)).status, 201)
})

test('a session downloads and restores a backup only with every right on its client', async () => {
  const me = await holding('backups')
  const requested = await me.post('/admin/backups', { client_name: 'default' })
  assert.equal(requested.status, 202, requested.text)
  await t.service.kernel.jobs.drain(t.service.handlers)
  const { job_id: id } = requested.body.data
  assert.equal((await me.get(`/admin/backups/jobs/${id}`)).body.data.status, 'completed')

  assertRefused(await me.get(`/admin/backups/${id}/download`), '*')
  for (const client_name of ['default', 'second'])
    assertRefused(await me.post(`/admin/backups/${id}/restore`, { client_name, confirm: client_name }), '*')
  const { total } = (await t.admin.get('/admin/backups/jobs?job_type=restore')).body.data
  assert.equal(total, 0)
  const told = await db
    .selectFrom('auditEvent')
    .select('action')
    .where('targetId', '=', id)
    .where('outcome', '=', 'success')
    .execute()
  assert.deepEqual(told, [{ action: 'backup.requested' }])

  const admin = await holding('admin')
  assert.equal((await admin.get(`/admin/backups/${id}/download`)).status, 200)

  // Of a client that the configuration has no more, which may have had policies.
  await db.updateTable('backupJob').set({ clientName: 'gone' }).where('id', '=', id).execute()
  const restored = (await holding('restorer')).post(`/admin/backups/${id}/restore`, {
    client_name: 'second',
    confirm: 'second',
  })
  assertRefused(await restored, 'gateway.bypass_row_level_security')
})

test('a request that the roles refuse is counted in the audit trail, one row a minute for the account', async () => {
  const person = await operatorOf(t, 'routes')
  const me = byBearer(t, person)
  await me.get('/admin/api-keys')
  await me.post('/admin/public-routes', { ...ROUTE, route_key: 'new', table_name: 'customers' })
  await me.post('/gateway/fetch', { table_name: 'customers' })
  await me.get('/admin/public-routes')
  const rows = await db
    .selectFrom('auditEvent')
    .select(['action', 'targetId', 'outcome', 'details', 'count'])
    .where('actorId', '=', person.id)
    .execute()
  const row = { action: 'operator_act.failed', targetId: person.id, outcome: 'failure' }
  assert.equal(
    rows.reduce((sum, { count }) => sum + Number(count), 0),
    3,
  )
  for (const { count, ...found } of rows)
    assert.deepEqual(found, { ...row, details: { reason: 'insufficient_rights' } })
})
