import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { ENDPOINT } from '#test/webhooks.ts'

const t = await testService()
const headers = { 'x-service-client': 'default' }
const owner = await t.key(['*'])

const HOOK = { route_key: 'gateway_insert', url: ENDPOINT }
const BOOK = { table_name: 'book' }
const IS_1 = [{ eq_column: 'id', eq_value: 1 }]
const tableOf = (column: object) => ({
  table_name: 'made',
  columns: [{ name: 'a', data_type: 'int', ...column }],
})

/** Path, body, the name of another product or part, the member that was meant. */
const bodies: readonly (readonly [string, object, string, string])[] = [
  ['/gateway/fetch', { ...BOOK, filter: IS_1 }, 'filter', 'conditions'],
  ['/gateway/fetch', { ...BOOK, filters: IS_1 }, 'filters', 'conditions'],
  ['/gateway/fetch', { ...BOOK, fields: ['id'] }, 'fields', 'columns'],
  ['/query/count', { ...BOOK, filters: IS_1 }, 'filters', 'conditions'],
  ['/pipelines/simulate', { source: { ...BOOK, filter: IS_1 } }, 'source.filter', 'conditions'],
  ['/gateway/insert', { ...BOOK, insert_body: { id: 2 }, upsert: true }, 'upsert', 'on_conflict'],
  ['/management/tables', tableOf({ default_value: '1' }), 'columns.0.default_value', 'default_expression'],
  ['/management/tables', tableOf({ not_null: true }), 'columns.0.not_null', 'nullable'],
]

test('a member with the name that other products use is refused with the name that it has here, and nothing is done', async () => {
  await owner.post('/query/sql', {
    driver: 'postgresql',
    query: 'create table book (id int primary key); insert into book values (1)',
  })
  for (const [path, body, member, meant] of bodies) {
    const answer = await owner.post(path, body, { headers })
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.message],
      [400, 'validation_error', `There is no member ${member}; did you mean ${meant}?`],
      answer.text,
    )
  }
  const left = await owner.post('/gateway/fetch', BOOK, { headers })
  assert.deepEqual(left.body.data, [{ id: 1 }])
  const made = await owner.post('/gateway/fetch', { table_name: 'made' }, { headers })
  assert.equal(made.body.code, 'table_not_found', made.text)
})

/** The kind of record, the body of its change, the name of another product, the member that was meant. */
const changes: readonly (readonly ['api-keys' | 'webhooks', object, string, string])[] = [
  ['api-keys', { scopes: ['book.read'] }, 'scopes', 'rights'],
  ['api-keys', { permissions: ['book.read'] }, 'permissions', 'rights'],
  ['api-keys', { enabled: false }, 'enabled', 'is_active'],
  ['webhooks', { events: ['*'] }, 'events', 'route_keys'],
  ['webhooks', { event_types: ['*'] }, 'event_types', 'route_keys'],
  ['webhooks', { disabled: true }, 'disabled', 'is_active'],
]

test('a change of a key or a webhook by such a name is refused, and the record stays', async () => {
  const key = await t.admin.post('/admin/api-keys', {
    name: 'reporting',
    rights: ['*'],
    client_name: 'default',
  })
  const webhook = await t.admin.post('/admin/webhooks', HOOK, { headers })
  const ids = { 'api-keys': key.body.data.record.id, webhooks: webhook.body.data.id }
  for (const [kind, body, member, meant] of changes) {
    const path = `/admin/${kind}/${ids[kind]}`
    const before = await t.admin.get(path, { headers })
    const answer = await t.admin.send('PATCH', path, { body, headers })
    assert.deepEqual(
      [answer.status, answer.body.message],
      [400, `There is no member ${member}; did you mean ${meant}?`],
      answer.text,
    )
    assert.equal((await t.admin.get(path, { headers })).text, before.text)
  }
})

test('where a part has such a name itself, it means that part', async () => {
  const call = { function: 'generate', filters: [{ column: 'id', operator: 'lte', value: 20 }] }
  const answer = await owner.post('/gateway/rpc', call, { headers })
  assert.equal(answer.body.code, 'function_not_found', answer.text)
})
