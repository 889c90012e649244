import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Actor, actor, controlDatabase, testService } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { createSecuredClient } from '#test/secured-client.ts'

const BYPASS = 'gateway.bypass_row_level_security'
const PATH = '/admin/clients/default/row-level-security'

/** Two processes whose built-in client is not protected yet. */
const secured = await createSecuredClient()
const { sql, builtIn } = secured
const controlUrl = await controlDatabase()
const auth = { admin: { roles: { keeper: { operator: ['clients'] }, clerk: { operator: ['keys'] } } } }
const t = await testService({ controlUrl, builtIn, config: { auth } })
const other = await testService({ controlUrl, builtIn })
after(async () => {
  await Promise.all([t.stop(), other.stop()])
  await secured.drop()
})
await sql('create table book (id int primary key, title text); insert into book values (1, $$Notes$$)')

const operator = await t.key(['*', BYPASS, 'management.functions.write'])
const reader = await t.key(['book.*'])
const everything = await t.key(['*'])
const ada = await t.signUp('Ada')
const protect = (who: Actor, enabled = true) => who.send('PUT', PATH, { body: { enabled } })
const booksOf = async (who: Actor, url = t.url) => {
  const { status, body } = await actor(url, who.headers).post('/gateway/fetch', { table_name: 'book' })
  return status === 200 ? body.data.length : body.code
}
const trail = () =>
  t.service.kernel.db
    .selectFrom('auditEvent')
    .select(['actorId', 'targetId', 'clientName'])
    .where('action', '=', 'client.protected')
    .execute()
const setSecurity = (who: Actor) =>
  who.send('PUT', '/management/tables/book/row-level-security', {
    body: { enabled: true, policies: [{ preset: 'signed_in_read' }] },
  })

test('without a setting the client has no row-level security, and the refusal says how to switch it on', async () => {
  assert.deepEqual(await Promise.all([operator, reader, everything].map((key) => booksOf(key))), [1, 1, 1])
  const { status, body } = await setSecurity(operator)
  assert.deepEqual([status, body.code], [400, 'row_level_security_off'])
  assert.match(body.error, /PUT \/admin\/clients\/default\/row-level-security/)
  assert.deepEqual(body.data.details, {
    setting: 'clients.default.row_level_security.enabled',
    is_undecided: true,
  })
})

test('a key, a session without the right and one without a fresh proof cannot switch it on', async () => {
  assert.deepEqual((await protect(t.anon)).status, 401)
  assert.equal((await protect(operator)).body.code, 'insufficient_rights')
  const clerk = byBearer(t, await operatorOf(t, 'clerk'))
  assert.equal((await protect(clerk)).body.code, 'insufficient_rights')
  const stale = byBearer(t, await operatorOf(t, 'keeper', 11))
  assert.equal((await protect(stale)).body.code, 'session_not_fresh')
  assert.deepEqual(await trail(), [])
  assert.equal(await booksOf(reader), 1)
})

test('it is switched on where no setting decides, and never off', async () => {
  for (const [name, code] of [
    ['logging', 'row_level_security_configured'],
    ['nowhere', 'client_not_found'],
  ] as const) {
    const path = `/admin/clients/${name}/row-level-security`
    assert.equal((await t.admin.send('PUT', path, { body: { enabled: true } })).body.code, code)
  }
  const off = await protect(t.admin, false)
  assert.deepEqual([off.status, off.body.code], [409, 'row_level_security_configured'])
  for (const enabled of [true, false]) {
    const decided = await testService({
      controlUrl,
      builtIn,
      config: { clients: { default: { row_level_security: { enabled } } } },
    })
    const { status, body } = await protect(decided.admin)
    assert.deepEqual([status, body.code], [409, 'row_level_security_configured'])
    await decided.stop()
  }
  assert.deepEqual(await trail(), [])
})

test('with the answer, every process keeps callers to the policies; the trail says who did it, once', async () => {
  assert.equal(await booksOf(reader, other.url), 1)
  const keeper = await operatorOf(t, 'keeper')
  const done = await protect(byBearer(t, keeper))
  assert.equal(done.status, 200, done.text)
  assert.deepEqual(done.body.data, { client_name: 'default', enabled: true })
  for (const { url } of [t, other]) {
    assert.equal(await booksOf(operator, url), 1)
    assert.equal(await booksOf(actor(url, { ...t.admin.headers, 'x-service-client': 'default' }), url), 1)
    assert.equal(await booksOf(reader, url), 'permission_denied')
    assert.equal(await booksOf(everything, url), 'permission_denied')
  }
  assert.equal((await protect(t.admin)).status, 200)
  assert.deepEqual(await trail(), [{ actorId: keeper.id, targetId: 'default', clientName: 'default' }])
})

test('policies show rows to sessions from then on, and the setting has the last word', async () => {
  const set = await setSecurity(operator)
  assert.equal(set.status, 200, set.text)
  const page = actor(t.url, { ...reader.headers, 'x-service-auth-session-token': ada.token })
  assert.deepEqual([await booksOf(page), await booksOf(reader)], [1, 'permission_denied'])
  const asBearer = actor(t.url, { ...reader.headers, authorization: `Bearer ${ada.token}` })
  assert.equal(await booksOf(asBearer), 1)
  const again = await testService({ controlUrl, builtIn })
  assert.equal(await booksOf(reader, again.url), 'permission_denied')
  await again.stop()
  const off = await testService({
    controlUrl,
    builtIn,
    config: { clients: { default: { row_level_security: { enabled: false } } } },
  })
  assert.equal(await booksOf(reader, off.url), 1)
  await off.stop()
})
