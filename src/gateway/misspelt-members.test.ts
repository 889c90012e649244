import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor, testService } from '#test/harness.ts'
import type { OpenapiDocument } from '#test/openapi.ts'
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

const BOOK = { table_name: 'book' }
const IS_1 = [{ eq_column: 'id', eq_value: 1 }]
const row = { id: 9, title: 'New', colums: 1 }
const step = (kind: string, payload: object) => ({ operations: [{ id: 'a', kind, payload }] })

/** Path, body, the misspelt member, the one that was meant. */
const dataBodies: readonly (readonly [string, object, string, string])[] = [
  ['/gateway/fetch', { ...BOOK, condition: IS_1 }, 'condition', 'conditions'],
  ['/gateway/data', { ...BOOK, limt: 1 }, 'limt', 'limit'],
  ['/gateway/fetch', { ...BOOK, colums: ['id'] }, 'colums', 'columns'],
  ['/gateway/fetch', { ...BOOK, Columns: ['id'] }, 'Columns', 'columns'],
  ['/gateway/fetch', { ...BOOK, pageSize: 1 }, 'pageSize', 'page_size'],
  ['/gateway/fetch', { ...BOOK, schema: 'other' }, 'schema', 'schema_name'],
  ['/gateway/fetch', { ...BOOK, group: 'title' }, 'group', 'group_by'],
  [
    '/gateway/fetch',
    { ...BOOK, sort_by: { field: 'id', directoin: 'desc' } },
    'sort_by.directoin',
    'direction',
  ],
  ['/gateway/fetch', { ...BOOK, orderBy: [{ column: 'id', null: 'last' }] }, 'orderBy.0.null', 'nulls'],
  ['/query/count', { ...BOOK, condition: IS_1 }, 'condition', 'conditions'],
  ['/gateway/insert', { ...BOOK, insert_body: row, onConflict: 'id' }, 'onConflict', 'on_conflict'],
  ['/gateway/update', { ...BOOK, set: { title: 'x' }, conditions: IS_1, limits: 1 }, 'limits', 'limit'],
  ['/gateway/delete', { ...BOOK, conditions: IS_1, limt: 1 }, 'limt', 'limit'],
  ['/gateway/delete', { ...BOOK, resource_id: 1, contitions: IS_1 }, 'contitions', 'conditions'],
  [
    '/gateway/transaction',
    step('delete', { ...BOOK, resource_id: 1, condition: IS_1 }),
    'operations.0.payload.condition',
    'conditions',
  ],
  [
    '/gateway/transaction',
    step('fetch', { ...BOOK, sort_by: [{ field: 'id', directon: 'desc' }] }),
    'operations.0.payload.sort_by.0.directon',
    'direction',
  ],
  [
    '/gateway/transaction',
    { ...step('delete', { ...BOOK, resource_id: 1 }), options: { readonly: true } },
    'options.readonly',
    'read_only',
  ],
  [
    '/gateway/transaction',
    { ...step('delete', { ...BOOK, resource_id: 1 }), idempotencyKey: 'k' },
    'idempotencyKey',
    'idempotency_key',
  ],
  ['/gateway/rpc', { function: 'twice', args: { n: 1 }, limt: 1 }, 'limt', 'limit'],
  ['/gateway/rpc', { function: 'twice', arg: { n: 1 } }, 'arg', 'args'],
  [
    '/gateway/rpc',
    { function: 'twice', order: [{ column: 'n', ascendng: false }] },
    'order.0.ascendng',
    'ascending',
  ],
  ['/rpc/twice', { args: { n: 1 }, limt: 1 }, 'limt', 'limit'],
  ['/pipelines', { source: { ...BOOK, condition: IS_1 }, sink: BOOK }, 'source.condition', 'conditions'],
  ['/pipelines/simulate', { source: { ...BOOK, limt: 1 } }, 'source.limt', 'limit'],
  ['/public/shelf/fetch', { condition: IS_1 }, 'condition', 'conditions'],
  ['/public/shelf/insert', { insert_body: row, onConflict: 'id' }, 'onConflict', 'on_conflict'],
  ['/public/shelf/delete', { resource_id: 1, contitions: IS_1 }, 'contitions', 'conditions'],
  ['/query/sql', { driver: 'postgresql', query: 'delete from book', param: [] }, 'param', 'params'],
  ['/gateway/query', { query: 'delete from book', schema: 'other' }, 'schema', 'schema_name'],
]

test('a misspelt member of a read, a write, a call or SQL is refused with the right one, and nothing is read or written', async () => {
  await owner.post('/query/sql', {
    driver: 'postgresql',
    query: `create table book (id int primary key, title text, colums int); insert into book values (1, 'One'), (2, 'Two');
      create function twice(n int) returns table (n int) language sql stable as 'select 2 * n';
      create function cast_out(limt int, colums int) returns int language sql stable as 'select limt + colums'`,
  })
  const allowed_ops = ['fetch', 'insert', 'delete']
  const made = await admin.post('/admin/public-routes', {
    ...ROUTE,
    route_key: 'shelf',
    requires_key: false,
    allowed_ops,
  })
  assert.equal(made.status, 201, made.text)
  for (const [path, body, member, meant] of dataBodies) {
    const answer = await owner.send(path === '/gateway/insert' ? 'PUT' : 'POST', path, { body, headers })
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.message, answer.body.data.details],
      [
        400,
        'validation_error',
        `There is no member ${member}; did you mean ${meant}?`,
        { field: member, in: 'body' },
      ],
      `${path} ${answer.text}`,
    )
  }
  const left = await owner.post('/gateway/fetch', { ...BOOK, sort_by: { field: 'id' } }, { headers })
  assert.deepEqual(left.body.data, [
    { id: 1, title: 'One', colums: null },
    { id: 2, title: 'Two', colums: null },
  ])
})

const DATA = '/data?view=book&eq_column=id&eq_value=1'
const LISTS = 'api-keys public-routes statements webhooks backups/jobs webhooks/ID/deliveries'
/** Path, the misspelt parameter, the one that was meant. Every GET of the gateway that has parameters is here, but the one that needs a ticket. */
const queries: readonly (readonly [string, string, string])[] = [
  [`${DATA}&limt=1`, 'limt', 'limit'],
  [`${DATA}&colums=id`, 'colums', 'columns'],
  [`${DATA}&page=2`, 'page', 'page_size'],
  [`${DATA}&group=title`, 'group', 'group_by'],
  [`${DATA}&sort-by=title`, 'sort-by', 'sort_by'],
  ['/schema/tables?schema=other', 'schema', 'schema_name'],
  ['/schema/columns?table_name=book&table_shema=other', 'table_shema', 'table_schema'],
  ...['constraints', 'indexes'].map((list) => [`/schema/${list}?table_nam=book`, 'table_nam', 'table_name'] as const), // biome-ignore format: short
  ['/schema/types?shap=kysely', 'shap', 'shape'],
  ['/management/functions?nam_like=a', 'nam_like', 'name_like'],
  ...['row-level-security', 'realtime'].map((part) => [`/management/tables/book/${part}?schema=other`, 'schema', 'schema_name'] as const), // biome-ignore format: short
  ...LISTS.split(' ').map((list) => [`/admin/${list}?limt=1`, 'limt', 'limit'] as const),
]

test('a misspelt parameter of any GET is refused with the right one', async () => {
  const manager = await t.key(['*', 'management.*'])
  for (const [path, name, meant] of queries) {
    const who = path.startsWith('/admin') ? admin : manager
    const answer = await who.get(path.replace('ID', '01900000-0000-7000-8000-000000000001'), { headers })
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.message, answer.body.data.details],
      [
        400,
        'validation_error',
        `There is no parameter ${name}; did you mean ${meant}?`,
        { field: name, in: 'querystring' },
      ],
      `${path} ${answer.text}`,
    )
  }
  const document = t.service.app.swagger() as unknown as OpenapiDocument // the library types it for any version
  const withParameters = Object.entries(document.paths).flatMap(([path, { get }]) =>
    get?.parameters?.some((parameter) => parameter.in === 'query') === true ? [path] : [],
  )
  const asked = queries.map(([path]) => path.replace(/\?.*/, '').replace('/book/', '/{table_name}/').replace('ID', '{id}')) // biome-ignore format: short
  const ofGateway = withParameters.filter((path) => !/^\/(api\/auth\/.*|rpc\/\{name\}|realtime)$/.test(path))
  assert.deepEqual([...new Set(asked)].sort(), ofGateway.sort())
})

test('an API key, quite other parameters and arguments of functions are not taken for misspelt ones', async () => {
  const asked = actor(t.url, headers)
  for (const path of [
    `${DATA}&api_key=${owner.apiKey}`,
    `/rpc/cast_out?limt=1&colums=2&api_key=${owner.apiKey}`,
  ])
    assert.equal((await asked.get(path)).status, 200, path)
  for (const more of [
    '_=1732',
    'utm_source=mail',
    'sortBy=title',
    'order_by=title&sort_direction=desc',
    'count=exact',
  ])
    assert.equal((await owner.get(`${DATA}&${more}`, { headers })).status, 200, more)
})

test('a misspelt member in conditions or in a structured selection is refused with the right one', async () => {
  for (const [body, name, meant] of [
    [{ conditions: [{ colum: 'id', value: 1 }] }, 'colum', 'column'],
    [{ conditions: { column: 'id', value: 1, value_csat: 'text' } }, 'value_csat', 'value_cast'],
    [{ conditions: [{ or: [{ colum: 'id', value: 1 }] }] }, 'colum', 'column'],
    [{ conditions: { operator: 'or', value: [{ column: 'id', valeu: 1 }] } }, 'valeu', 'value'],
    [{ select: { id: true, book: { select: { id: true }, form: 'book' } } }, 'form', 'from'],
  ] as const) {
    const answer = await owner.post('/gateway/fetch', { ...BOOK, ...body }, { headers })
    assert.equal(answer.status, 400, answer.text)
    assert.match(
      `${answer.body.message} ${answer.body.error}`,
      new RegExp(`${name}.*did you mean ${meant}\\?`, 'i'),
    )
  }
})

test('columns of rows and arguments of functions are not members', async () => {
  const inserted = await owner.send('PUT', '/gateway/insert', {
    body: { ...BOOK, insert_body: [row] },
    headers,
  })
  assert.equal(inserted.status, 200, inserted.text)
  const set = { colums: 5 }
  const updated = await owner.post('/gateway/update', { ...BOOK, set, where: { colums: 1 } }, { headers })
  assert.deepEqual(updated.body.data, [{ ...row, ...set }], updated.text)
  const args = { limt: 1, colums: 2 }
  for (const [path, body] of [
    ['/gateway/rpc', { function: 'cast_out', args }],
    ['/rpc/cast_out', args],
    ['/rpc/cast_out', { args }],
  ] as const)
    assert.deepEqual((await owner.post(path, body, { headers })).body.data, [{ cast_out: 3 }])
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
