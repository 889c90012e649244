import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import pg from 'pg'
import { type Actor, actor, testService } from '#test/harness.ts'

const t = await testService()
const all = await t.key(['gateway.read', 'gateway.write', 'gateway.delete'])

before(async () => {
  const client = new pg.Client({ connectionString: t.clientUrl })
  await client.connect()
  await client.query(`
    create table author (id int primary key, name text not null);
    create table book (id int primary key, title text not null unique, pages int, price numeric, author_id int references author);
    create table secret (id int primary key, word text);
    insert into author values (1, 'Ada'), (2, 'Bob');
    insert into book values (1, 'One', 10, 12345678901234567890.0123456789, 1), (2, 'Two', null, null, 1), (3, 'Three', 30, 3, 2);
    insert into secret values (1, 'hush');
    create table thing (id int primary key, label text);
    create table child () inherits (thing);
    insert into thing values (1, 'keep'), (2, 'keep');
    insert into child values (1, 'drop'), (1, 'keep'), (2, 'drop'), (2, 'keep');
    create table maker (id int primary key);
    create table made (id int primary key, maker_id int references maker);
    insert into maker select generate_series(1, 3);
    insert into made select n, 1 from generate_series(1, 5000) n;
    insert into made values (5001, 2), (5002, 2);
    create index on made (maker_id)`)
  await client.end()
})

const fetchRows = (who: Actor, body: object) => who.post('/gateway/fetch', body)

test('fetch supports columns, conditions, sorting, paging and count, and keeps all digits', async () => {
  const answer = await fetchRows(all, {
    table_name: 'book',
    columns: ['id', 'name:title', 'price'],
    conditions: [{ operator: 'gte', column: 'id', value: 1 }],
    sort_by: { field: 'id', direction: 'desc' },
    current_page: 2,
    page_size: 2,
    total_pages: 7,
    count: 'exact',
  })
  assert.equal(answer.status, 200, answer.text)
  assert.match(answer.text, /"price":12345678901234567890\.0123456789/)
  assert.deepEqual(
    [answer.body.status, answer.body.message, answer.body.count, answer.body.total_pages],
    ['success', 'Fetched 1 rows', 3, 7],
  )
  assert.equal(answer.body.data[0].name, 'One')
  assert.match(answer.body.cache_key, /^[0-9a-f]{64}$/)
})

test('the default limit reports that it cut rows, and a limit above the maximum is rejected', async () => {
  await all.post('/gateway/insert', {
    table_name: 'secret',
    insert_body: Array.from({ length: 1_100 }, (_, index) => ({ id: index + 10 })),
  })
  const cut = await fetchRows(all, { table_name: 'secret' })
  assert.deepEqual([cut.body.data.length, cut.body.has_more], [1_000, true])
  assert.equal((await fetchRows(all, { table_name: 'secret', limit: 1_000 })).body.has_more, undefined)
  const large = await fetchRows(all, { table_name: 'secret', limit: 10_001 })
  assert.deepEqual([large.status, large.body.code], [400, 'limit_too_large'])
})

test('a relation needs the right to its table', async () => {
  const books = await t.key(['book.read'])
  const both = await t.key(['book.read', 'author.read'])
  const body = {
    table_name: 'book',
    columns: 'title,author(name)',
    conditions: [{ eq_column: 'id', eq_value: 1 }],
  }
  const refused = await fetchRows(books, body)
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_rights'])
  assert.equal(refused.body.data.details.required_right, 'author.read')
  assert.deepEqual((await fetchRows(both, body)).body.data, [{ title: 'One', author: { name: 'Ada' } }])
})

test('a key without the right cannot find out anything about a table, not even whether it exists', async () => {
  const key = await t.key(['book.read'])
  for (const table_name of ['secret', 'nothing_here']) {
    for (const [method, path, more] of [
      ['POST', '/gateway/fetch', {}],
      ['POST', '/query/count', {}],
      ['POST', '/gateway/insert', { insert_body: { id: 1 } }],
      ['POST', '/gateway/update', { set: { word: 'x' }, conditions: [{ eq_column: 'id', eq_value: 1 }] }],
      ['POST', '/gateway/delete', { resource_id: 1 }],
    ] as const) {
      const answer = await key.send(method, path, { body: { table_name, ...more } })
      assert.deepEqual(
        [answer.status, answer.body.code],
        [403, 'insufficient_rights'],
        `${path} ${table_name}`,
      )
    }
    const byGet = await key.get(`/data?view=${table_name}&eq_column=word&eq_value=hush`)
    assert.equal(byGet.status, 403)
  }
})

test('a key with the right to write but not to read can write, and gets no rows back', async () => {
  const writer = await t.key(['author.write'])
  const condition = [{ eq_column: 'id', eq_value: 2 }]
  const update = await writer.post('/gateway/update', {
    table_name: 'author',
    set: { name: 'Bo' },
    conditions: condition,
  })
  assert.deepEqual([update.status, update.body.data, update.body.affected_rows], [200, [], 1])
  const asking = await writer.post('/gateway/update', {
    table_name: 'author',
    update_body: { name: 'Bo' },
    columns: ['name'],
    conditions: condition,
  })
  assert.deepEqual([asking.status, asking.body.data.details.required_right], [403, 'author.read'])
  const upsert = {
    table_name: 'author',
    insert_body: { id: 2, name: 'B' },
    on_conflict: 'id',
    update_body: { name: 'Bob' },
  }
  assert.deepEqual((await writer.post('/gateway/insert', upsert)).body.data, [])
  const insert = await writer.post('/gateway/insert', {
    table_name: 'author',
    insert_body: { id: 3, name: 'C' },
  })
  assert.deepEqual([insert.status, insert.body.data, insert.body.affected_rows], [200, [], 1])
})

test('GET /data reads by one condition, with the same responses and errors as a fetch', async () => {
  const query = '/data?view=book&eq_column=author_id&eq_value=1'
  const rows = await all.get(`${query}&columns=id,pages&sort_by=id&sort_direction=descending`)
  assert.deepEqual(rows.body.data, [
    { id: 2, pages: null },
    { id: 1, pages: 10 },
  ])
  const stripped = await all.get(`${query}&columns=id,pages&sort_by=id&strip_nulls=true&limit=1&offset=1`)
  assert.deepEqual(stripped.body.data, [{ id: 2 }])
  const byHeader = await all.get(`${query}&columns=pages&sort_by=id`, {
    headers: { 'x-strip-nulls': 'true' },
  })
  assert.deepEqual(byHeader.body.data, [{ pages: 10 }, {}])
  const page = await all.get(`${query}&columns=id&current_page=1&page_size=1&total_pages=2`)
  assert.equal(page.body.total_pages, 2)

  for (const name of ['view', 'eq_column', 'eq_value']) {
    const missing = await all.get(query.replace(new RegExp(`${name}=\\w+&?`), ''))
    assert.deepEqual([missing.status, missing.body.code], [400, 'validation_error'])
    assert.match(missing.body.message, new RegExp(name))
  }
  const invalid = await all.get('/data?view=book&eq_column=id&eq_value=x')
  assert.deepEqual(
    [invalid.status, invalid.body.code, invalid.body.data.details.column],
    [422, 'invalid_value', 'id'],
  )
})

test('a write is atomic, and every error names its cause', async () => {
  const rows = [
    { id: 4, title: 'Four' },
    { id: 5, title: 'One', pages: 1 },
  ]
  const duplicate = await all.send('PUT', '/gateway/insert', {
    body: { table_name: 'book', insert_body: rows },
  })
  assert.deepEqual([duplicate.status, duplicate.body.code], [409, 'unique_violation'])
  assert.deepEqual(duplicate.body.data.details.columns, ['title'])
  const fine = { table_name: 'book', insert_body: [rows[0], { id: 5, title: 'Five', pages: 1 }] }
  const inserted = await all.send('PUT', '/gateway/insert', { body: fine })
  assert.deepEqual([inserted.body.message, inserted.body.affected_rows], ['Data inserted successfully', 2])

  const unbounded = await all.post('/gateway/update', { table_name: 'book', set: { pages: 0 } })
  assert.deepEqual([unbounded.status, unbounded.body.code], [400, 'unbounded_write'])
  const update = await all.post('/gateway/update', {
    table_name: 'book',
    set: { pages: 0 },
    conditions: [{ operator: 'in', column: 'id', value: [4, 5] }],
  })
  assert.equal(update.body.affected_rows, 2)
  const byId = await all.send('DELETE', '/gateway/delete', { body: { table_name: 'book', resource_id: 4 } })
  assert.deepEqual([byId.body.affected_rows, byId.body.data[0].title], [1, 'Four'])
  const orphan = await all.post('/gateway/insert', {
    table_name: 'book',
    insert_body: { id: 9, title: 'Nine', author_id: 99 },
  })
  assert.deepEqual([orphan.status, orphan.body.code], [409, 'foreign_key_violation'])
  await all.post('/gateway/delete', { table_name: 'book', resource_id: 5 })
})

test('count supports conditions, and returns the count at the top level and in data', async () => {
  const { body } = await all.post('/query/count', {
    table_name: 'book',
    conditions: [{ eq_column: 'author_id', eq_value: 1 }],
  })
  assert.deepEqual([body.count, body.data.count, body.data.db_name], [2, 2, 'default'])
})

test('a large response is streamed completely, and its connection is released', async () => {
  const word = 'x'.repeat(2_000)
  const rows = Array.from({ length: 3_000 }, (_, index) => ({ id: index + 5_000, word }))
  assert.equal(
    (await all.post('/gateway/insert', { table_name: 'secret', insert_body: rows, head: true })).status,
    200,
  )
  for (let round = 0; round < 15; round++) {
    const answer = await fetchRows(all, {
      table_name: 'secret',
      conditions: [{ operator: 'gte', column: 'id', value: 5_000 }],
      limit: 3_000,
    })
    assert.equal(answer.body.data.length, 3_000)
  }
})

test('a request needs an existing client and a key that is valid for it', async () => {
  const bare = actor(t.url, { apikey: all.apiKey })
  const missing = await fetchRows(bare, { table_name: 'book' })
  assert.deepEqual([missing.status, missing.body.code], [400, 'missing_client_header'])
  assert.equal(missing.body.data.details.missing_header, 'X-Service-Client')
  const unknown = await fetchRows(actor(t.url, { apikey: all.apiKey, 'x-service-client': 'nowhere' }), {
    table_name: 'book',
  })
  assert.deepEqual([unknown.status, unknown.body.code], [400, 'unknown_client'])
  const other = await fetchRows(actor(t.url, { apikey: all.apiKey, 'x-service-client': 'logging' }), {
    table_name: 'book',
  })
  assert.deepEqual([other.status, other.body.code], [403, 'api_key_client_mismatch'])
  const stranger = await fetchRows(actor(t.url, { 'x-service-client': 'nowhere' }), { table_name: 'book' })
  assert.deepEqual([stranger.status, stranger.body.code], [401, 'api_key_required'])
})

test('the logging client can be read with the admin key or a bound key, and never written', async () => {
  const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'logging' })
  const own = await t.key(['*'], { client_name: 'logging' })
  const bound = actor(t.url, { apikey: own.apiKey, 'x-service-client': 'logging' })
  const anyClient = await t.key(['gateway.read'], { client_name: null })
  for (const who of [admin, bound]) {
    assert.equal((await fetchRows(who, { table_name: 'database_audit_log' })).status, 200)
    const write = await who.post('/gateway/delete', {
      table_name: 'database_audit_log',
      allow_unbounded: true,
    })
    assert.deepEqual([write.status, write.body.code], [403, 'read_only'])
  }
  const unbound = actor(t.url, { apikey: anyClient.apiKey, 'x-service-client': 'logging' })
  assert.equal((await fetchRows(unbound, { table_name: 'database_audit_log' })).status, 403)
})

test('a limited write on an inherited table changes only rows that match its conditions', async () => {
  const labels = async () =>
    (
      await fetchRows(all, { table_name: 'thing', columns: 'id,label', sort_by: ['label', 'id'] })
    ).body.data.map(({ id, label }: { id: number; label: string }) => `${id} ${label}`)
  const conditions = [{ column: 'label', value: 'drop' }]
  const updated = await all.post('/gateway/update', {
    table_name: 'thing',
    set: { label: 'gone' },
    conditions,
    limit: 1,
    sort_by: { field: 'id' },
  })
  assert.deepEqual([updated.status, updated.body.affected_rows], [200, 1], updated.text)
  assert.deepEqual(await labels(), ['2 drop', '1 gone', '1 keep', '1 keep', '2 keep', '2 keep'])
  const deleted = await all.post('/gateway/delete', { table_name: 'thing', conditions, limit: 5 })
  assert.deepEqual([deleted.status, deleted.body.affected_rows], [200, 1], deleted.text)
  assert.deepEqual(await labels(), ['1 gone', '1 keep', '1 keep', '2 keep', '2 keep'])
})

test('nested lists of relations that exceed the response limit are rejected before they are built', async () => {
  const columns = 'id,made(id,maker(made(id)))'
  const few = await fetchRows(all, {
    table_name: 'maker',
    columns,
    conditions: [{ operator: 'gt', column: 'id', value: 1 }],
    sort_by: 'id',
  })
  const made = [{ id: 5001 }, { id: 5002 }]
  assert.deepEqual(few.body.data, [
    { id: 2, made: made.map(({ id }) => ({ id, maker: { made } })) },
    { id: 3, made: [] },
  ])
  const began = performance.now()
  const many = await fetchRows(all, { table_name: 'maker', columns })
  assert.deepEqual([many.status, many.body.code], [413, 'result_too_large'], many.text.slice(0, 300))
  // Building 25 million rows would take half a minute.
  assert.ok(performance.now() - began < 10_000)
  const written = await all.post('/gateway/update', {
    table_name: 'maker',
    set: { id: 1 },
    conditions: [{ column: 'id', value: 1 }],
    columns: ['id', 'made(id,maker(made(id)))'],
  })
  assert.deepEqual([written.status, written.body.code], [413, 'result_too_large'], written.text.slice(0, 300))
})
