import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Actor, type Answer, testService } from '#test/harness.ts'
import { lastAudit } from '#test/management/last-audit.ts'

const t = await testService()
const key = await t.key(['management.*', 'gateway.*'])

type EventOf = { readonly name: string; readonly data: Record<string, unknown> }
const events: EventOf[] = []
t.service.kernel.events.subscribe((name, data) => void events.push({ name, data: { ...data } }))

/** Names and data of the events since the last call, without client and request. */
function emitted(): readonly (readonly [string, object])[] {
  return events
    .splice(0)
    .filter(({ name }) => name.startsWith('schema_'))
    .map(({ name, data: { client: _client, request_id: _request, ...data } }) => [name, data])
}

const edit = (table: string, operations: readonly object[], who: Actor = key) =>
  who.send('PATCH', `/management/tables/${table}`, { body: { operations } })
const drop = (path: string, body: object = {}, who: Actor = key) =>
  who.send('DELETE', `/management/${path}`, { body })

async function created(table_name: string, columns: readonly object[] = []): Promise<void> {
  const answer = await key.post('/management/tables', { table_name, columns })
  assert.equal(answer.status, 200, answer.text)
  emitted()
}

/** Status and code. */
const refusal = ({ status, body }: Answer) => [status, body.code]

test('edits run in order in one transaction, and each tells its event', async () => {
  await created('books', [
    { name: 'title', data_type: 'text' },
    { name: 'pages', data_type: 'text' },
  ])
  await key.post('/gateway/insert', { table_name: 'books', insert_body: { title: 'a', pages: ' 12 ' } })
  emitted()
  const answer = await edit('books', [
    { operation: 'add_column', column: { name: 'rating', data_type: 'int', default_expression: '3' } },
    { operation: 'rename_column', column_name: 'rating', new_name: 'stars' },
    { operation: 'set_not_null', column_name: 'stars' },
    { operation: 'set_default', column_name: 'stars', default_expression: '5' },
    { operation: 'alter_type', column_name: 'pages', data_type: 'smallint' },
    { operation: 'rename_table', new_name: 'works' },
    { operation: 'set_not_null', column_name: 'title' },
    { operation: 'drop_not_null', column_name: 'title' },
  ])
  assert.equal(answer.status, 200, answer.text)
  const { table_name, columns } = answer.body.data
  assert.equal(table_name, 'works')
  assert.deepEqual(
    columns.map((column: Record<string, unknown>) => Object.values(column)),
    [
      ['id', 'bigint', false, "nextval('books_id_seq'::regclass)", true],
      ['title', 'text', true, null, false],
      ['pages', 'smallint', true, null, false],
      ['stars', 'integer', false, '5', false],
    ],
  )
  const told = emitted()
  assert.deepEqual(told[0]?.[0], 'schema_table_altered')
  assert.deepEqual(told.slice(1, 4), [
    ['schema_column_added', { table: 'public.books', column: 'rating' }],
    ['schema_column_renamed', { table: 'public.books', column: 'rating', new_name: 'stars' }],
    ['schema_column_altered', { table: 'public.books', column: 'stars', operation: 'set_not_null' }],
  ])
  assert.equal(told.length, 8)
  const rows = await key.post('/gateway/fetch', { table_name: 'works' })
  assert.deepEqual(rows.body.data, [{ id: 1, title: 'a', pages: 12, stars: 3 }])
  assert.deepEqual(refusal(await key.post('/gateway/fetch', { table_name: 'books' })), [
    404,
    'table_not_found',
  ])
  assert.deepEqual(await lastAudit(t, 'books'), {
    operation: 'edit_table',
    object_type: 'table',
    status: 'succeeded',
  })
})

test('an edit that fails leaves the table as it was, without an event', async () => {
  await created('kept', [{ name: 'word', data_type: 'text' }])
  await key.post('/gateway/insert', { table_name: 'kept', insert_body: { word: 'secret' } })
  emitted()
  const operations = [
    { operation: 'rename_column', column_name: 'word', new_name: 'number' },
    { operation: 'alter_type', column_name: 'number', data_type: 'integer' },
  ]
  assert.deepEqual(refusal(await edit('kept', operations)), [422, 'invalid_value'])
  const { body } = await key.post('/gateway/fetch', { table_name: 'kept', columns: ['word'] })
  assert.deepEqual(body.data, [{ word: 'secret' }])
  assert.deepEqual(emitted(), [])
  assert.equal((await lastAudit(t, 'kept')).status, 'failed')

  // A key without the right to read the table is not told whether the values fit.
  const blind = await t.key(['management.tables.write'])
  const hidden = await edit('kept', operations, blind)
  assert.deepEqual(refusal(hidden), [403, 'insufficient_rights'])
  assert.doesNotMatch(hidden.text, /secret/)
})

test('values are never cut off by a new type', async () => {
  await created('lengths', [
    { name: 'word', data_type: 'text' },
    { name: 'small', data_type: 'bigint' },
  ])
  await key.post('/gateway/insert', { table_name: 'lengths', insert_body: { word: 'abcdef', small: 70_000 } })
  for (const [column_name, data_type] of [
    ['word', 'varchar(3)'],
    ['word', 'char(3)'],
    ['small', 'smallint'],
  ] as const)
    assert.deepEqual(
      refusal(await edit('lengths', [{ operation: 'alter_type', column_name, data_type }])),
      [422, 'invalid_value'],
      data_type,
    )
  const impossible = await edit('lengths', [
    { operation: 'alter_type', column_name: 'small', data_type: 'uuid' },
  ])
  assert.deepEqual(refusal(impossible), [400, 'invalid_definition'])
})

test('the id that the service added cannot be dropped or changed', async () => {
  await created('managed', [{ name: 'a', data_type: 'text' }])
  const operations = [
    { operation: 'rename_column', column_name: 'id', new_name: 'x' },
    { operation: 'alter_type', column_name: 'id', data_type: 'text' },
    { operation: 'drop_default', column_name: 'id' },
    { operation: 'drop_not_null', column_name: 'id' },
    { operation: 'set_default', column_name: 'id', default_expression: '1' },
  ]
  for (const operation of operations)
    assert.deepEqual(refusal(await edit('managed', [operation])), [400, 'reserved_column'])
  assert.deepEqual(refusal(await drop('tables/managed/columns/id', { cascade: true })), [
    400,
    'reserved_column',
  ])
  await created('unmanaged', [{ name: 'id', data_type: 'uuid' }])
  const dropped = await drop('tables/unmanaged/columns/id')
  assert.deepEqual(dropped.body.data.columns, [])
})

test('what depends on an object refuses its drop, and is named to keys that may see it', async () => {
  await created('authors', [
    { name: 'name', data_type: 'text' },
    { name: 'born', data_type: 'date' },
  ])
  await created('poems', [
    { name: 'author', data_type: 'bigint', references: { table: 'authors', column: 'id' } },
  ])
  await withClient(t.clientUrl, (client) =>
    client.query(`create view births as select born from authors;
      create function oldest() returns authors language sql as 'select * from authors limit 1'`),
  )
  const refused = await drop('tables/authors')
  assert.deepEqual(refusal(refused), [409, 'object_in_use'])
  const names = (answer: Answer) =>
    answer.body.data.details.dependents.map(({ type, table_name, name }: Record<string, string>) =>
      [type, table_name, name].join(' '),
    )
  assert.deepEqual(names(refused), [
    'rule births births',
    'table constraint poems poems_author_fkey',
    'function  oldest',
  ])
  assert.deepEqual(names(await drop('tables/authors/columns/born')), ['rule births births'])

  const few = await t.key(['management.tables.drop', 'poems.read'])
  const partly = await drop('tables/authors', {}, few)
  assert.deepEqual(names(partly), ['table constraint poems poems_author_fkey'])
  assert.equal(partly.body.data.details.hidden_dependents, 2)
  assert.doesNotMatch(partly.text, /births|oldest/)
  assert.deepEqual(emitted(), [])

  assert.equal((await drop('tables/authors', { cascade: true })).status, 200)
  assert.deepEqual(emitted(), [['schema_table_dropped', { table: 'public.authors' }]])
  assert.equal((await key.post('/gateway/fetch', { table_name: 'poems' })).status, 200)
  assert.deepEqual(refusal(await key.post('/gateway/fetch', { table_name: 'births' })), [
    404,
    'table_not_found',
  ])
})

test('an index is created with a name, and dropped unless a constraint needs it', async () => {
  await created('tracks', [
    { name: 'title', data_type: 'text' },
    { name: 'tags', data_type: 'text[]' },
  ])
  const table_name = 'tracks'
  const made = await key.post('/management/indexes', { table_name, columns: ['title', 'id'], unique: true })
  assert.equal(made.status, 200, made.text)
  assert.deepEqual(made.body.data, {
    schema_name: 'public',
    table_name,
    index_name: 'tracks_title_id_idx',
    method: 'btree',
    unique: true,
    columns: ['title', 'id'],
    definition: 'CREATE UNIQUE INDEX tracks_title_id_idx ON public.tracks USING btree (title, id)',
  })
  const gin = { table_name, columns: ['tags'], method: 'gin', index_name: 'by_tag' }
  assert.equal((await key.post('/management/indexes', gin)).body.data.method, 'gin')
  assert.deepEqual(emitted(), [
    ['schema_index_created', { table: 'public.tracks', index: 'tracks_title_id_idx' }],
    ['schema_index_created', { table: 'public.tracks', index: 'by_tag' }],
  ])
  assert.deepEqual(refusal(await key.post('/management/indexes', gin)), [409, 'object_exists'])
  const wrong = { table_name, columns: ['title'], method: 'gin' }
  assert.deepEqual(refusal(await key.post('/management/indexes', wrong)), [400, 'invalid_definition'])
  assert.equal((await drop('indexes/by_tag')).status, 200)
  assert.deepEqual(emitted(), [['schema_index_dropped', { table: 'public.tracks', index: 'by_tag' }]])
  assert.deepEqual(refusal(await drop('indexes/by_tag')), [404, 'object_not_found'])
  assert.deepEqual(refusal(await drop('indexes/tracks_pkey')), [409, 'object_in_use'])
})

test('an extension of the list is installed once; others are refused', async () => {
  const install = (body: object) => key.post('/management/extensions/install', body)
  const made = await install({ extension_name: 'citext' })
  assert.equal(made.status, 200, made.text)
  assert.equal(made.body.data.schema_name, 'public')
  assert.deepEqual(emitted(), [['schema_extension_installed', { extension: 'citext', schema: 'public' }]])
  assert.deepEqual(refusal(await install({ extension_name: 'citext' })), [409, 'object_exists'])
  assert.equal((await install({ extension_name: 'citext', if_not_exists: true })).status, 200)
  assert.deepEqual(refusal(await install({ extension_name: 'dblink' })), [400, 'extension_not_allowed'])
  assert.deepEqual(refusal(await install({ extension_name: 'vector' })), [400, 'extension_unavailable'])
  assert.deepEqual(refusal(await install({ extension_name: 'hstore', schema_name: 'nowhere' })), [
    404,
    'object_not_found',
  ])
  assert.deepEqual(emitted(), [])
  // A column of the new type, found although it is not in pg_catalog.
  await created('mails', [{ name: 'address', data_type: 'citext' }])
})

test('PostgreSQL decides what the role of a client may do', async () => {
  await withClient(t.clientUrl, async (client) => {
    const { rows } = await client.query('select current_user as me, current_database() as here')
    await client.query(`create schema closed; create table closed.things (id int primary key, a text)`)
    await client.query(`revoke create on database ${rows[0].here} from ${rows[0].me}`)
  })
  const refused = await key.post('/management/extensions/install', { extension_name: 'pg_trgm' })
  assert.deepEqual(refusal(refused), [403, 'permission_denied'])
  assert.match(refused.body.error, /superuser/)
})

test('a change waits two seconds for a lock, then answers 503 and lets the others go on', async () => {
  await created('busy', [{ name: 'a', data_type: 'text' }])
  await withClient(t.clientUrl, async (client) => {
    await client.query('begin; select from busy')
    const began = performance.now()
    const [change, read] = await Promise.all([
      drop('tables/busy'),
      key.post('/gateway/fetch', { table_name: 'busy' }),
    ])
    assert.deepEqual(refusal(change), [503, 'object_busy'])
    assert.equal(change.headers.get('retry-after'), '5')
    assert.equal(read.status, 200)
    assert.ok(performance.now() - began < 60_000)
    await client.query('rollback')
  })
  assert.equal((await drop('tables/busy')).status, 200)
})

test('a frozen client refuses every change', async () => {
  const name = 'thawing'
  await t.admin.post('/admin/clients', { client_name: name, url: t.clientUrl })
  const bound = await t.key(['management.*'], { client_name: name })
  const headers = { 'x-service-client': name }
  const body = { table_name: 'on_ice', columns: [] }
  await t.admin.send('PUT', `/admin/clients/${name}/freeze`, { body: { is_frozen: true } })
  assert.deepEqual(refusal(await bound.post('/management/tables', body, { headers })), [403, 'client_frozen'])
  assert.deepEqual(refusal(await bound.send('DELETE', '/management/tables/kept', { body: {}, headers })), [
    403,
    'client_frozen',
  ])
})
