import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { type Answer, testService } from '#test/harness.ts'
import { FOR_CLIENT, webhookRequests } from '#test/webhooks.ts'

const t = await testService()
const { db } = t.service.kernel
const { make, made, at } = webhookRequests(t)

const issue = async (body: object) =>
  t.admin.post('/admin/api-keys', { name: 'k', rights: ['*'], client_name: 'default', ...body })
const changeKey = (id: string, body: object) => t.admin.send('PATCH', `/admin/api-keys/${id}`, { body })
const keyWith = async (body: object): Promise<string> => (await issue(body)).body.data.record.id
const changeWebhook = (id: string, body: object) => t.admin.send('PATCH', at(id), { body, ...FOR_CLIENT })
const route = (route_key: string, body: object) =>
  t.admin.post('/admin/public-routes', {
    ...{ route_key, client_name: 'default', allowed_ops: ['fetch'], table_name: 'book' },
    ...body,
  })
const changeRoute = (key: string, body: object) =>
  t.admin.send('PATCH', `/admin/public-routes/${key}`, { body })

/** Prepares a request that puts something into use for the client, and returns the request. */
type Verb = (client: string) => Promise<() => Promise<Answer>>

const VERBS: Readonly<Record<string, Verb>> = {
  'a key is issued': async (client_name) => () => issue({ client_name }),
  'a key is issued that may override with it': async (client) => () =>
    issue({ client_overrides: ['default', client] }),
  'a key is bound': async (client_name) => {
    const id = await keyWith({})
    return () => changeKey(id, { client_name })
  },
  'a key is activated': async (client_name) => {
    const id = await keyWith({ client_name })
    await changeKey(id, { is_active: false })
    return () => changeKey(id, { is_active: true })
  },
  'a key may override with it': async (client) => {
    const id = await keyWith({})
    return () => changeKey(id, { client_overrides: [client] })
  },
  'a webhook is created': async (client_name) => () => make({ route_key: 'gateway_insert', client_name }),
  'a webhook is moved': async (client_name) => {
    const id = await made({ route_key: 'gateway_insert' })
    return () => changeWebhook(id, { client_name })
  },
  'a webhook is activated': async (client_name) => {
    const id = await made({ route_key: 'gateway_insert', client_name, is_active: false })
    return () => changeWebhook(id, { is_active: true })
  },
  'a route is created': async (client_name) => () => route(`${client_name}-new`, { client_name }),
  'a route is moved': async (client_name) => {
    await route(`${client_name}-moved`, {})
    return () => changeRoute(`${client_name}-moved`, { client_name })
  },
  'a route is activated': async (client_name) => {
    await route(`${client_name}-old`, { client_name, is_active: false })
    return () => changeRoute(`${client_name}-old`, { is_active: true })
  },
  'its need of keys is set': async (client) => () =>
    t.admin.send('PUT', `/admin/api-key-clients/${client}`, { body: { enforce_api_keys: false } }),
}

/** Active records that a new client of this name would take over. */
async function inUse(client: string): Promise<unknown> {
  const { rows } = await sql`
    select 'key' as kind from service.api_key where is_active and (client_name = ${client} or client_overrides @> array[${client}::text])
    union all select 'webhook' from service.webhook where is_active and client_name = ${client}
    union all select 'route' from service.public_route where is_active and client_name = ${client}
    union all select 'enforcement' from service.api_key_config where client_name = ${client}`.execute(db)
  return rows
}

const watcher = new pg.Client({ connectionString: t.controlUrl })
await watcher.connect()
after(() => watcher.end())

/** Until so many statements wait for a lock, or the answer has come. */
async function waiting(count: number, answer?: Promise<Answer>): Promise<void> {
  let isAnswered = false
  void answer?.then(() => {
    isAnswered = true
  })
  while (!isAnswered) {
    const { rows } = await watcher.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if ((rows[0]?.n ?? 0) >= count) return
    await sleep(5)
  }
}

/** Each verb writes an act: the first one waits there, in the middle of its transaction, until the second one waits as well or is done. */
async function inTurn(
  first: () => Promise<Answer>,
  second: () => Promise<Answer>,
): Promise<readonly [Answer, Answer]> {
  const gate = new pg.Client({ connectionString: t.controlUrl })
  await gate.connect()
  await gate.query('begin; lock table service.audit_event in exclusive mode')
  const begun = first()
  await waiting(1)
  const next = second()
  await waiting(2, next)
  await gate.query('rollback')
  await gate.end()
  return Promise.all([begun, next])
}

let clients = 0
for (const [name, verb] of Object.entries(VERBS)) {
  test(`${name} while its client is removed: nothing is left in use, whichever comes first`, async () => {
    const prepare = async () => {
      const client = `shop${++clients}`
      const registered = await t.admin.post('/admin/clients', { client_name: client, url: t.clientUrl })
      assert.equal(registered.status, 201, registered.text)
      const remove = () => t.admin.send('DELETE', `/admin/clients/${client}`)
      return { client, act: await verb(client), remove }
    }
    const late = await prepare()
    const [removal, refused] = await inTurn(late.remove, late.act)
    const code = name.startsWith('its') ? [404, 'client_not_found'] : [400, 'unknown_client']
    assert.deepEqual([removal.status, refused.status, refused.body.code], [200, ...code], refused.text)
    assert.deepEqual(await inUse(late.client), [])

    const early = await prepare()
    const [acted, removed] = await inTurn(early.act, early.remove)
    assert.ok(acted.status < 300, acted.text)
    assert.equal(removed.status, 200)
    assert.deepEqual(await inUse(early.client), [])
  })
}

test('a key may name a client that is not registered yet, and none that was removed', async () => {
  assert.equal((await issue({ client_name: 'later', client_overrides: ['later'] })).status, 201)
  await t.admin.post('/admin/clients', { client_name: 'former', url: t.clientUrl })
  const id = await keyWith({ client_name: 'former' })
  await t.admin.send('DELETE', '/admin/clients/former')
  for (const body of [{ client_name: 'former' }, { client_overrides: ['former'] }])
    assert.deepEqual((await issue(body)).body.code, 'unknown_client')
  assert.equal((await changeKey(id, { is_active: true })).body.code, 'unknown_client')
  assert.equal((await changeKey(id, { description: 'of a former client' })).status, 200)
  assert.equal((await changeKey(id, { client_name: null, is_active: true })).status, 200)
})

test('of two rotations at once, the one that comes later keeps the secret of the other', async () => {
  const { api_key: first, record } = (await issue({ client_name: 'default' })).body.data
  const rotate = async () =>
    (await t.admin.post(`/admin/api-keys/${record.id}/rotate`, { grace_seconds: 60 })).body.data.api_key
  const [one, two] = await Promise.all([rotate(), rotate()])
  const use = async (key: string) =>
    (
      await t.anon.get('/management/capabilities', {
        headers: { apikey: key, 'x-service-client': 'default' },
      })
    ).status
  const statuses = [await use(one), await use(two), await use(first)]
  assert.deepEqual(statuses, [200, 200, 401])
})
