import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ageProof, byBearer, operatorOf } from '#test/operators.ts'
import { createTenants } from '#test/tenants.ts'

const issuer = { issuer: 'https://id.example.com', audience: ['https://api.example.com'] }
const { t, changeControlDatabase } = await createTenants(({ url, policies }) => ({
  clients: {
    foreign: { url, row_level_security: { ...policies, own_sessions: false, issuers: [issuer] } },
  },
}))
const ON_APP = { headers: { 'x-service-client': 'app' } }
const fetchDocs = { table_name: 'doc', columns: ['id'] }
const idsOf = (rows: readonly { id: number | string }[]) => rows.map(({ id }) => Number(id)).toSorted()

test('a session that operates with the right to bypass acts as the role of the client, with a recent proof only', async () => {
  const root = await operatorOf(t, 'admin')
  const me = byBearer(t, root)
  const all = await me.post('/gateway/fetch', fetchDocs, ON_APP)
  assert.equal(all.status, 200, all.text)
  assert.deepEqual(idsOf(all.body.data), [1, 2, 3, 4])
  const counted = await me.post('/gateway/query', { query: 'select count(*)::int as n from doc' }, ON_APP)
  assert.deepEqual(counted.body.data, [{ n: 4 }], counted.text)

  const asUser = await root.post('/gateway/fetch', fetchDocs, ON_APP)
  assert.deepEqual(idsOf(asUser.body.data), [3], 'without the header it is a user like others')

  await ageProof(t, root, 11)
  for (const [path, body] of [
    ['/gateway/fetch', fetchDocs],
    ['/gateway/query', { query: 'select 1' }],
  ] as const) {
    const late = await me.post(path, body, ON_APP)
    assert.deepEqual([late.status, late.body.code], [403, 'session_not_fresh'], path)
  }
})

test('a session that operates without that right acts as its user, and runs no SQL', async () => {
  const keeper = byBearer(t, await operatorOf(t, 'keeper'))
  const seen = await keeper.post('/gateway/fetch', fetchDocs, ON_APP)
  assert.equal(seen.status, 200, seen.text)
  assert.deepEqual(idsOf(seen.body.data), [3])
  const refused = await keeper.post('/gateway/query', { query: 'select 1' }, ON_APP)
  assert.deepEqual(
    [refused.status, refused.body.code, refused.body.data.details.required_right],
    [403, 'insufficient_rights', 'gateway.bypass_row_level_security'],
  )
  const elsewhere = await keeper.post('/gateway/fetch', fetchDocs, {
    headers: { 'x-service-client': 'wide' },
  })
  assert.deepEqual([elsewhere.status, elsewhere.body.code], [403, 'insufficient_rights'])
})

test('a session without that right opens no rows past the policies by a public route or a webhook', async () => {
  const me = byBearer(t, await operatorOf(t, 'keeper,publisher'))
  const route = { client_name: 'app', table_name: 'doc', allowed_ops: ['fetch'], requires_key: false }
  const asCaller = await me.post('/admin/public-routes', { ...route, route_key: 'docs' })
  assert.equal(asCaller.status, 201, asCaller.text)
  const asOwner = { ...route, route_key: 'all-docs', run_as: 'owner' }
  const webhook = { route_key: 'gateway_insert', url: 'https://example.com/docs', client_name: 'app' }
  for (const refused of [
    await me.post('/admin/public-routes', asOwner),
    await me.send('PATCH', '/admin/public-routes/docs', { body: { run_as: 'owner' } }),
    await me.post('/admin/webhooks', webhook),
  ])
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.data.details.required_rights],
      [403, 'insufficient_rights', ['gateway.bypass_row_level_security']],
      refused.text,
    )
  const seen = await t.anon.post('/public/docs/fetch', { columns: ['id'] })
  assert.deepEqual(idsOf(seen.body.data), [3], 'the route still runs as its caller')
  assert.equal((await t.anon.post('/public/all-docs/fetch', {})).status, 404)
})

test('an answer of a session that loses its role meanwhile is refused at the next request', async () => {
  const root = await operatorOf(t, 'admin')
  const me = byBearer(t, root)
  assert.equal((await me.post('/gateway/fetch', fetchDocs, ON_APP)).status, 200)
  await changeControlDatabase(`update service."user" set role = 'user' where id = $1`, [root.id])
  const refused = await me.post('/gateway/fetch', fetchDocs, ON_APP)
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_rights'])
})

test('where the users are those of another issuer, a session without that right is refused', async () => {
  const onForeign = { headers: { 'x-service-client': 'foreign' } }
  const keeper = byBearer(t, await operatorOf(t, 'keeper'))
  const refused = await keeper.post('/gateway/fetch', fetchDocs, onForeign)
  assert.deepEqual([refused.status, refused.body.code], [401, 'invalid_session'], refused.text)
  const root = byBearer(t, await operatorOf(t, 'admin'))
  const all = await root.post('/gateway/fetch', fetchDocs, onForeign)
  assert.deepEqual(idsOf(all.body.data), [1, 2, 3, 4])
})
