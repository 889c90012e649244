import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { ENDPOINT } from '#test/webhooks.ts'

const t = await testService()
const { admin } = t
const headers = { 'x-service-client': 'default' }
const owner = await t.key(['*'])

const ROUTE = { route_key: 'books', client_name: 'default', allowed_ops: ['fetch'], table_name: 'book' }
const KEY = { name: 'reporting', rights: ['*'], client_name: 'default' }
const WEBHOOK = { route_key: 'gateway_insert', url: ENDPOINT }
const CLIENT = { client_name: 'reporting', url: t.clientUrl }

type Made = { readonly id: string; readonly route_key: string; readonly client_name: string }

const refusals: readonly (readonly [string, object, string, string])[] = [
  [
    '/admin/public-routes',
    { ...ROUTE, condition: [{ eq_column: 'id', eq_value: 1 }] },
    'condition',
    'conditions',
  ],
  ['/admin/public-routes', { ...ROUTE, Columns: ['id'] }, 'Columns', 'columns'],
  [
    '/admin/public-routes',
    { ...ROUTE, rate_limit: { requests: 1, window_seconds: 1, request: 2 } },
    'rate_limit.request',
    'requests',
  ],
  ['/admin/api-keys', { ...KEY, client: 'default' }, 'client', 'client_name'],
  ['/admin/api-keys', { ...KEY, clientName: 'default' }, 'clientName', 'client_name'],
  ['/admin/webhooks', { ...WEBHOOK, filters: [] }, 'filters', 'filter'],
  ['/admin/webhooks', { ...WEBHOOK, active: false }, 'active', 'is_active'],
  ['/admin/clients', { ...CLIENT, active: null }, 'active', 'is_active'],
]

test('a member with a misspelt name is refused with the right one, and nothing is created', async () => {
  for (const [path, body, member, meant] of refusals) {
    const before = await admin.get(path, { headers })
    const answer = await admin.post(path, body, { headers })
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.message, answer.body.data.details],
      [
        400,
        'validation_error',
        `There is no member ${member}; did you mean ${meant}?`,
        { field: member, in: 'body' },
      ],
      answer.text,
    )
    assert.equal((await admin.get(path, { headers })).text, before.text)
  }
})

test('a misspelt schema does not let a change act on another one', async () => {
  const body = { schema: 'elsewhere', table_name: 'misplaced', columns: [{ name: 'title', type: 'text' }] }
  const answer = await owner.post('/management/tables', body, { headers })
  assert.deepEqual([answer.status, answer.body.data.details.field], [400, 'schema'], answer.text)
  const column = { name: 'title', type: 'text', nulable: false }
  const refused = await owner.post(
    '/management/tables',
    { table_name: 'misplaced', columns: [column] },
    { headers },
  )
  assert.deepEqual(
    [refused.status, refused.body.data.details.field],
    [400, 'columns.0.nulable'],
    refused.text,
  )
  const { body: tables } = await owner.get('/schema/tables', { headers })
  assert.ok(!JSON.stringify(tables).includes('misplaced'))
})

test('a record is taken back as it was answered, and members of quite other names are ignored', async () => {
  const own = { note: 'mine', $schema: 'https://example.com/v1', __id: 7 }
  for (const [path, body, idOf] of [
    ['/admin/public-routes', ROUTE, ({ route_key }: Made) => route_key],
    ['/admin/webhooks', WEBHOOK, ({ id }: Made) => id],
    ['/admin/clients', CLIENT, ({ client_name }: Made) => client_name],
    ['/admin/api-keys', KEY, ({ id }: Made) => id],
  ] as const) {
    const made = await admin.post(path, { ...body, ...own }, { headers })
    assert.equal(made.status, 201, made.text)
    const record = Object.fromEntries(
      Object.entries(made.body.data.record ?? made.body.data).filter(([, value]) => value !== null),
    ) as Made
    const changed = await admin.send('PATCH', `${path}/${idOf(record)}`, {
      body: { ...record, ...body, ...own },
      headers,
    })
    assert.equal(changed.status, 200, changed.text)
  }
})

test('a body with many unknown members is judged by its known ones', async () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`unknown_member_${at}`, at]))
  const answer = await admin.post('/admin/api-keys', { ...KEY, ...many })
  assert.equal(answer.status, 201, answer.text)
})
