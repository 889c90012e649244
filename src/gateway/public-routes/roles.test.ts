import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor } from '#test/harness.ts'
import { createTenants } from '#test/tenants.ts'

const { t, sql, users, roles, acme } = await createTenants()
const stranger = actor(t.url, {})
const as = ({ token }: { readonly token: string }) => actor(t.url, { 'x-service-auth-session-token': token })

let routes = 0
async function route(facts: object): Promise<string> {
  const route_key = `docs-${++routes}`
  const body = { route_key, client_name: 'app', requires_key: false, table_name: 'doc', ...facts }
  const answer = await t.admin.post('/admin/public-routes', body)
  assert.equal(answer.status, 201, answer.text)
  return `/public/${route_key}`
}
const ids = (answer: { readonly body: { readonly data: readonly { readonly id: number }[] } }) =>
  answer.body.data.map(({ id }) => id).toSorted()

test('a call acts as its session or the anonymous role, also with SQL, unless the record names the owner', async () => {
  const query = 'select id, current_user::text as role, claims() as claims from doc where id > $1'
  const path = await route({ allowed_ops: ['fetch', 'query'], query })
  const owned = await route({ allowed_ops: ['fetch', 'query'], query, run_as: 'owner' })
  for (const op of ['fetch', 'query']) {
    const body = op === 'query' ? { params: [0] } : { columns: ['id'] }
    assert.deepEqual(ids(await stranger.post(`${path}/${op}`, body)), [3])
    assert.deepEqual(ids(await as(users.ada).post(`${path}/${op}`, body)), [1, 3])
    assert.deepEqual(ids(await stranger.post(`${owned}/${op}`, body)), [1, 2, 3, 4])
    assert.deepEqual(ids(await as(users.ada).post(`${owned}/${op}`, body)), [1, 2, 3, 4])
    // The next caller on the connection has nothing of the last one.
    assert.deepEqual(ids(await stranger.post(`${path}/${op}`, body)), [3])
  }
  const [seen] = (await as(users.ada).post(`${path}/query`, { params: [0] })).body.data
  assert.deepEqual(
    [seen.role, seen.claims.user_id, seen.claims.organization_id],
    [roles.member, users.ada.id, acme],
  )
  const wrong = await actor(t.url, { 'x-service-auth-session-token': 'wrong' }).post(`${path}/fetch`, {})
  assert.deepEqual([wrong.status, wrong.body.code], [401, 'invalid_session'])
})

test('a key that passes the policies elsewhere does not pass them on a public route', async () => {
  const path = await route({ allowed_ops: ['fetch'], requires_key: true })
  const { headers } = await t.key(['*', 'gateway.bypass_row_level_security'], { client_name: 'app' })
  assert.deepEqual(ids(await actor(t.url, headers).post(`${path}/fetch`, {})), [3])
})

test('policies and conditions both hold for what is written', async () => {
  const path = await route({
    allowed_ops: ['insert', 'update', 'query'],
    conditions: [{ eq_column: 'open', eq_value: false }],
    query: 'insert into doc (id, organization_id, title) values ($1, $2, $3) returning id',
  })
  const row = { id: 50, organization_id: acme, title: 'New' }
  assert.equal((await stranger.post(`${path}/insert`, { insert_body: row })).body.code, 'permission_denied')
  assert.equal(
    (await stranger.post(`${path}/query`, { params: [51, acme, 'x'] })).body.code,
    'permission_denied',
  )
  assert.equal(
    (await as(users.cem).post(`${path}/insert`, { insert_body: row })).body.code,
    'permission_denied',
  )
  assert.equal(
    (await as(users.cem).post(`${path}/query`, { params: [51, acme, 'x'] })).body.code,
    'permission_denied',
  )
  assert.equal(
    (await as(users.ada).post(`${path}/insert`, { insert_body: { ...row, open: true } })).body.code,
    'outside_route',
  )
  assert.equal(
    (await as(users.ada).post(`${path}/update`, { set: { open: true }, where: { id: 1 } })).body.code,
    'outside_route',
  )
  assert.equal((await as(users.ada).post(`${path}/insert`, { insert_body: row })).status, 200)
  assert.equal((await as(users.ada).post(`${path}/query`, { params: [51, acme, 'x'] })).status, 200)
  assert.deepEqual(await sql('select id, open from doc where id >= 50 order by id'), [
    { id: 50, open: false },
    { id: 51, open: false },
  ])
})
