import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const BYPASS = 'gateway.bypass_row_level_security'
const roleWith = (...rights: string[]) => ({ operator: ['routes'], gateway: { app: rights } }) as const
const { t, adas, createTable, secured, insert } = await createSecuredTables({
  auth: {
    admin: {
      roles: { reader: roleWith('todo.read'), writer: roleWith('*'), auditor: roleWith('*', BYPASS) },
    },
  },
})
await createTable('todo', [TEXT, USER])
await secured('todo', [{ preset: 'owner' }])
await insert(adas, 'todo', { text: 'hidden' })

/** As its caller it may become the client's own role again, as every SQL may. */
const QUERY = `with own as materialized (select set_config('role', 'none', false))
  select query_to_xml('select text from todo', true, true, '')::text as seen from own`
const ROUTE = { client_name: 'app', requires_key: false }
const OPEN = { ...ROUTE, allowed_ops: ['query'], query: QUERY }
const holding = async (role: string) => byBearer(t, await operatorOf(t, role))

function assertRefused({ status, body, text }: Answer): void {
  assert.deepEqual([status, body?.code], [403, 'insufficient_rights'], text)
  assert.ok(body.data.details.required_rights.includes(BYPASS), text)
}

test('a session writes SQL for a public route only if it sees what policies hide', async () => {
  const own = { ...ROUTE, table_name: 'todo', allowed_ops: ['fetch'] }
  for (const [route_key, record] of [
    ['own', own],
    ['theirs', { ...OPEN, query: 'select 1 as one' }],
  ] as const) {
    const made = await t.admin.post('/admin/public-routes', { ...record, route_key })
    assert.equal(made.status, 201, made.text)
  }
  const writer = await holding('writer')
  assertRefused(await writer.post('/admin/public-routes', { ...OPEN, route_key: 'new' }))
  const { allowed_ops, query } = OPEN
  assertRefused(await writer.send('PATCH', '/admin/public-routes/own', { body: { allowed_ops, query } }))
  assertRefused(await writer.send('PATCH', '/admin/public-routes/theirs', { body: { query } }))
  for (const key of ['new', 'own', 'theirs'])
    assert.ok(!(await t.anon.post(`/public/${key}/query`, {})).text.includes('hidden'), key)

  const auditor = await holding('auditor')
  const made = await auditor.post('/admin/public-routes', { ...OPEN, route_key: 'new' })
  assert.equal(made.status, 201, made.text)
  const seen = await t.anon.post('/public/new/query', {})
  assert.match(seen.text, /hidden/, 'which is why it needs the right')
})

test('a session that may not run SQL changes none, also where the route does not offer it at present', async () => {
  const paused = { ...ROUTE, table_name: 'todo', allowed_ops: ['fetch'], query: 'select 1 as one' }
  assert.equal((await t.admin.post('/admin/public-routes', { ...paused, route_key: 'paused' })).status, 201)
  for (const role of ['reader', 'writer']) {
    const who = await holding(role)
    assertRefused(await who.send('PATCH', '/admin/public-routes/paused', { body: { query: QUERY } }))
    assertRefused(await who.post('/admin/public-routes', { ...paused, query: QUERY, route_key: 'later' }))
  }
  const { body } = await t.admin.get('/admin/public-routes/paused')
  assert.equal(body.data.query, paused.query)
})
