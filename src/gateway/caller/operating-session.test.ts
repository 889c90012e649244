import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADMIN_KEY, type Answer, PASSWORD, testService } from '#test/harness.ts'
import { ageProof, byBearer, byCookie, OPERATE, operatorOf, sending } from '#test/operators.ts'

const t = await testService({
  config: {
    auth: {
      trusted_origins: ['https://app.example.com'],
      admin: {
        roles: {
          keys: { operator: ['keys'], gateway: { default: ['orders.*'] } },
          audit: { operator: ['audit'] },
          tables: { gateway: { default: ['orders.*', 'management.tables.write', 'management.tables.drop'] } },
        },
      },
    },
  },
})
const own = new URL(t.service.kernel.publicUrl()).origin
const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)
const NEW_KEY = { name: 'made', client_name: 'default', rights: ['orders.read'] }

test('a cookie operates from pages of the service only', async () => {
  const root = await operatorOf(t, 'admin')
  const get = async (headers: Record<string, string>) =>
    said(await byCookie(t, root, headers).get('/admin/clients'))
  const post = async (headers: Record<string, string>) =>
    said(await byCookie(t, root, headers).post('/admin/api-keys', NEW_KEY))
  for (const send of [get, post]) {
    const [done] = [send === get ? '200' : '201']
    assert.equal(await send({ origin: own }), done)
    for (const origin of ['https://evil.example.com', 'https://app.example.com', `${own}.example.com`])
      assert.equal(await send({ origin, 'sec-fetch-site': 'same-origin' }), '403 invalid_origin', origin)
    assert.equal(await send({ origin: 'null' }), '403 missing_or_null_origin')
    assert.equal(await send({}), '403 missing_or_null_origin', 'no browser')
  }
  assert.equal(await get({ 'sec-fetch-site': 'same-origin' }), '200')
  assert.equal(await get({ referer: `${own}/console` }), '200')
  for (const site of ['none', 'same-site', 'cross-site'])
    assert.equal(await get({ 'sec-fetch-site': site, referer: `${own}/` }), '403 invalid_origin', site)
  for (const referer of ['https://app.example.com/', 'nonsense', `https://evil.example.com/?${own}/`])
    assert.equal(await get({ referer }), '403 invalid_origin', referer)
  assert.equal(await post({ 'sec-fetch-site': 'same-origin' }), '403 missing_or_null_origin')
  assert.equal(await post({ referer: `${own}/console` }), '403 missing_or_null_origin')
})

test('a Bearer token beside the header is a session from any origin, and never a key', async () => {
  const root = await operatorOf(t, 'admin')
  const authorization = `Bearer ${root.token}`
  assert.equal(
    said(await sending(t, { authorization, origin: 'https://evil.example.com' }).get('/admin/clients')),
    '200',
  )
  const { apiKey } = await t.key(['*'])
  for (const token of [apiKey, ADMIN_KEY, 'x'.repeat(43)]) {
    const wrong = sending(t, { authorization: `Bearer ${token}` })
    assert.equal(said(await wrong.get('/admin/clients')), '401 invalid_session')
    assert.equal(said(await wrong.post('/gateway/fetch', { table_name: 'orders' })), '401 invalid_session')
  }
  assert.equal(said(await sending(t, {}).get('/admin/clients')), '401 session_required')
  for (const header of ['apikey', 'x-api-key', 'x-service-key', 'x-service-admin-key'])
    assert.equal(
      said(await sending(t, { authorization, [header]: ADMIN_KEY }).get('/admin/clients')),
      '400 ambiguous_api_key',
    )
  for (const header of ['x-service-auth-session-token', 'x-service-auth-bearer-token'])
    assert.equal(
      said(await sending(t, { authorization, [header]: root.token }).get('/admin/clients')),
      '400 ambiguous_session',
    )
  const zero = { headers: { authorization, 'x-service-session': '0' } }
  assert.notEqual(said(await t.anon.get('/admin/clients', zero)), '200')
})

test('the audit trail names the user', async () => {
  const root = await operatorOf(t, 'admin')
  const made = await byBearer(t, root).post('/admin/api-keys', NEW_KEY)
  assert.equal(made.status, 201, made.text)
  const id = made.body.data.record.id
  const { body } = await root.get(`/api/auth/admin/list-audit-events?targetId=${id}`)
  assert.deepEqual(
    body.events.map(({ action, actorId }: { action: string; actorId: string }) => [action, actorId]),
    [['api_key.created', root.id]],
  )
  const auditor = await operatorOf(t, 'audit')
  assert.equal((await auditor.get('/api/auth/admin/list-audit-events')).status, 200, 'the part includes it')
})

test('a session gives a key no right that its own roles lack', async () => {
  const keeper = await operatorOf(t, 'keys')
  const me = byBearer(t, keeper)
  const make = async (more: object) => said(await me.post('/admin/api-keys', { ...NEW_KEY, ...more }))
  assert.equal(await make({}), '201')
  assert.equal(await make({ rights: ['orders.*'] }), '201')
  for (const more of [
    { rights: ['orders.read', 'users.read'] },
    { rights: ['gateway.read'] },
    { rights: ['*'] },
    { client_name: null },
    { client_name: 'logging' },
  ])
    assert.equal(await make(more), '403 insufficient_rights', JSON.stringify(more))

  const strong = await t.key(['users.read'])
  for (const [method, path, body] of [
    ['POST', `/admin/api-keys/${strong.keyId}/rotate`, {}],
    ['PATCH', `/admin/api-keys/${strong.keyId}`, { name: 'mine' }],
    ['PATCH', `/admin/api-keys/${strong.keyId}`, { expires_at: null }],
    ['PUT', '/admin/api-key-config', { enforce_api_keys: false }],
    ['PUT', '/admin/api-key-clients/default', { enforce_api_keys: false }],
  ] as const)
    assert.equal(said(await me.send(method, path, { body })), '403 insufficient_rights', path)
  const taken = await me.send('PATCH', `/admin/api-keys/${strong.keyId}`, { body: { is_active: false } })
  assert.equal(taken.status, 200, 'a right is taken away by who lacks it')
  assert.equal(said(await strong.post('/gateway/fetch', { table_name: 'users' })), '401 inactive_api_key')
})

test('rights of operators count where roles are given and users are acted on', async () => {
  const giver = await operatorOf(t, 'admin')
  const target = await operatorOf(t, 'user')
  const kernel = t.service.kernel
  await kernel.db.updateTable('user').set({ role: 'keys' }).where('id', '=', target.id).execute()
  await kernel.coherence.settle()
  const asked = await target.post('/api/auth/admin/has-permission', { permissions: { operator: ['keys'] } })
  assert.equal(asked.body.success, true, asked.text)
  const more = await target.post('/api/auth/admin/has-permission', { permissions: { operator: ['backups'] } })
  assert.equal(more.body.success, false)
  const odd = await target.post('/api/auth/admin/has-permission', { permissions: { gateway: ['default'] } })
  assert.deepEqual([odd.status, odd.body.success], [200, false])
  const impersonated = await giver.post('/api/auth/admin/impersonate-user', { userId: target.id })
  assert.equal(said(impersonated), '403 YOU_CANNOT_IMPERSONATE_ADMINS')
})

test('a table is made, filled, emptied and dropped by a session with the rights, the last two with a recent proof', async () => {
  const person = await operatorOf(t, 'tables')
  const me = byBearer(t, person)
  const columns = [{ name: 'id', data_type: 'bigint', primary_key: true }]
  const created = await me.post('/management/tables', { table_name: 'orders', columns })
  assert.equal(created.status, 200, created.text)
  const inserted = await me.send('PUT', '/gateway/insert', {
    body: { table_name: 'orders', insert_body: { id: 1 } },
  })
  assert.equal(inserted.status, 200, inserted.text)
  const remove = () =>
    me.send('DELETE', '/gateway/delete', {
      body: { table_name: 'orders', conditions: [{ eq_column: 'id', eq_value: 1 }] },
    })
  const inTransaction = () =>
    me.post('/gateway/transaction', {
      operations: [
        {
          id: 'a',
          kind: 'delete',
          payload: { table_name: 'orders', conditions: [{ eq_column: 'id', eq_value: 1 }] },
        },
      ],
    })
  const drop = () => me.send('DELETE', '/management/tables/orders', { body: {} })
  await ageProof(t, person, 11)
  for (const act of [remove, inTransaction, drop]) assert.equal(said(await act()), '403 session_not_fresh')
  assert.equal((await me.post('/gateway/fetch', { table_name: 'orders' })).body.data.length, 1)
  await ageProof(t, person, 1)
  for (const act of [remove, drop]) assert.equal(said(await act()), '200')
})

test('a function, whose body is SQL, is written with a recent proof only', async () => {
  const person = await operatorOf(t, 'admin', 11)
  const me = byBearer(t, person)
  const body = { ddl: 'create function written() returns int language sql as $$ select 1 $$' }
  const write = () => me.send('PUT', '/management/functions', { body })
  const call = () => me.post('/gateway/rpc', { function: 'written' })
  assert.equal(said(await write()), '403 session_not_fresh')
  await ageProof(t, person, -60)
  assert.equal(said(await write()), '403 session_not_fresh', 'of a time before the clock was set back')
  await ageProof(t, person, 1)
  assert.equal(said(await write()), '200')
  await ageProof(t, person, 11)
  assert.equal(said(await call()), '200')
})

test('a password at reauthenticate is such a proof, and the failure names it', async () => {
  const ada = await t.signUp('Ada')
  const { db, coherence, now } = t.service.kernel
  const earlier = new Date(now().getTime() - 11 * 60_000)
  await db.updateTable('user').set({ role: 'admin' }).where('id', '=', ada.id).execute()
  await db
    .updateTable('session')
    .set({ authTime: earlier, passwordShownAt: earlier })
    .where('userId', '=', ada.id)
    .execute()
  await coherence.settle()
  const make = (token: string) => byBearer(t, { token }).post('/admin/api-keys', NEW_KEY)
  const late = await make(ada.token)
  assert.equal(said(late), '403 session_not_fresh')
  assert.deepEqual(late.body.data.details, { accepts: ['password'] })
  const { body } = await ada.post('/api/auth/reauthenticate', { password: PASSWORD })
  assert.equal(said(await make(body.token)), '201')
  assert.equal(said(await make(ada.token)), '401 invalid_session', 'the former token')
})

test('metrics and details of health are open to a session with that part', async () => {
  const root = byBearer(t, await operatorOf(t, 'admin'))
  assert.match((await root.get('/metrics')).text, /gatehouse_/)
  assert.ok((await root.get('/health')).body.versions)
  const keeper = byBearer(t, await operatorOf(t, 'keys'))
  assert.equal(said(await keeper.get('/metrics')), '403 insufficient_rights')
  assert.equal((await keeper.get('/health')).body.versions, undefined)
  assert.equal((await t.anon.get('/health', { headers: OPERATE })).status, 401)
})
