import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { type Answer, actor, testService } from '#test/harness.ts'
import { startPostgrestEndpoint } from '#test/postgrest/endpoint.ts'
import { addWebhook } from '#test/webhooks.ts'

const MAX_ROWS = 300
const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
await sql(`
  create table author (id int primary key, name text);
  create table cell (
    id int primary key, author_id int references author, word text, price numeric, big bigint, real float8, ok boolean,
    day date, at timestamptz, local timestamp, tags text[], more jsonb, raw bytea, "a ""name"", odd" text);
  insert into author values (1, 'Ada, "the" first');
  insert into cell (id) values (1);
  insert into cell values (2, 1, '', 12.500, 9007199254740993, 'NaN', true, '2026-01-31', '2026-01-31 12:00:00.25+02', 'infinity',
    '{"a,b",NULL}', '{"k": "v\\"w"}', '\\x00ff', 'last');
  insert into cell (id, word, more) values (3, E'a "quote",\\r\\nand a line', 'null'), (4, '=1+1', '"text"'), (5, ' ä 🎉 \\ ', '7');
  create table filler (id int primary key, text text);
  insert into filler select n, repeat('x', 20000) from generate_series(1, 400) n`)
const endpoint = await startPostgrestEndpoint(database.url)
const t = await testService({
  config: {
    gateway: { max_rows: MAX_ROWS, cache: { ttl: 60_000 } },
    limits: { answer: 2_097_152, rows: 2 },
    clients: {
      books: { url: database.url, max_connections: 2 },
      shop: { driver: 'supabase' as const, url: endpoint.url },
    },
  },
})
after(async () => {
  await t.stop()
  endpoint.close()
  await database.drop()
})
const { apiKey } = await t.key(['*'], { client_name: null })
const on = (client: string) => actor(t.url, { apikey: apiKey, 'x-service-client': client })
const books = on('books')
const CSV = { headers: { accept: 'text/csv' } }
const csv = (body: object, who = books): Promise<Answer> => who.post('/gateway/fetch', body, CSV)
const refusal = ({ status, body }: Answer) => [status, body.code]

const LINES = [
  'id,author_id,word,price,big,real,ok,day,at,local,tags,more,raw,"a ""name"", odd"',
  '1,,,,,,,,,,,,,',
  String.raw`2,1,"",12.500,9007199254740993,NaN,true,2026-01-31,2026-01-31T10:00:00.25Z,infinity,"[""a,b"",null]","{""k"": ""v\""w""}",\x00ff,last`,
  '3,,"a ""quote"",\r\nand a line",,,,,,,,,null,,',
  '4,,=1+1,,,,,,,,,"""text""",,',
  '5,, ä 🎉 \\ ,,,,,,,,,7,,',
]
const TEXT = LINES.map((line) => `${line}\r\n`).join('')
const all = { table_name: 'cell', sort_by: 'id' }

test('every read answers CSV: to Accept, and as a file to format=csv', async () => {
  const accepted = await csv(all)
  assert.equal(accepted.status, 200, accepted.text)
  assert.equal(accepted.text, TEXT)
  assert.equal(accepted.headers.get('content-type'), 'text/csv; charset=utf-8; header=present')
  assert.equal(accepted.headers.get('content-disposition'), null)
  assert.equal(accepted.headers.get('x-service-cache'), null)
  for (const path of ['/gateway/fetch', '/gateway/data']) {
    const file = await books.post(`${path}?format=csv`, all, { headers: { accept: 'application/json' } })
    assert.equal(file.text, TEXT)
    const named = `attachment; filename="cell.csv"; filename*=UTF-8''cell.csv`
    assert.equal(file.headers.get('content-disposition'), named)
  }
  const one = 'id,word\r\n4,=1+1\r\n'
  const address = '/data?view=cell&eq_column=id&eq_value=4&columns=id,word'
  assert.equal((await books.get(address, CSV)).text, one)
  assert.equal((await books.get(`${address}&format=csv`)).text, one)
  assert.match((await books.get(`${address}&format=json`, CSV)).headers.get('content-type') ?? '', /json/)
  assert.match((await books.get(address)).headers.get('content-type') ?? '', /json/)
})

test('SQL answers CSV, also with two columns of one name and without rows', async () => {
  const query = 'select id, word as id, more, tags from cell where id > 1 order by 1 limit 3'
  const expected = [
    'id,id,more,tags',
    '2,"","{""k"": ""v\\""w""}","[""a,b"",null]"',
    '3,"a ""quote"",\r\nand a line",,',
    '4,=1+1,"""text""",',
    '',
  ].join('\r\n')
  for (const [path, more] of [
    ['/gateway/query', {}],
    ['/query/sql', { driver: 'postgresql' }],
    ['/gateway/sql?format=csv', { driver: 'postgresql' }],
  ] as const) {
    const answer = await books.post(path, { query, ...more }, CSV)
    assert.equal(answer.text, expected, path)
    assert.match(answer.headers.get('content-type') ?? '', /^text\/csv/)
  }
  const none = await books.post('/gateway/query', { query: 'select 1 as one where false' }, CSV)
  assert.equal(none.text, 'one\r\n')
  const nothing = await books.post('/gateway/query', { query: 'set work_mem to default' }, CSV)
  assert.deepEqual([nothing.status, nothing.text], [200, ''])
})

test('columns, aliases, casts, relations, pages and counts are those of the JSON answer', async () => {
  const columns = ['name:word', 'id::text', 'author:author_id(name)']
  const { text, headers } = await csv({ ...all, columns, limit: 1, offset: 1, count: 'exact' })
  assert.equal(text, `name,id,author\r\n"",2,"{""name"":""Ada, \\""the\\"" first""}"\r\n`)
  assert.equal(headers.get('x-service-count'), '5')
  const many = await csv({ table_name: 'author', columns: 'id,cell(id,word)' })
  assert.equal(many.text, `id,cell\r\n1,"[{""id"":2,""word"":""""}]"\r\n`)
  assert.equal((await csv({ ...all, columns: 'id,word', head: true })).text, 'id,word\r\n')
  assert.equal(
    (await csv({ ...all, columns: 'id,word', strip_nulls: true, limit: 1 })).text,
    'id,word\r\n1,\r\n',
  )
  const page = await csv({ ...all, columns: 'id', current_page: 2, page_size: 2 })
  assert.equal(page.text, 'id\r\n3\r\n4\r\n')
})

test('without a limit a file has all rows, and is refused when there are more than gateway.max_rows', async () => {
  const whole = await csv({ ...all, columns: 'id' })
  assert.equal(whole.text, 'id\r\n1\r\n2\r\n3\r\n4\r\n5\r\n', 'limits.rows is for JSON')
  const short = { table_name: 'filler', columns: 'id' }
  const cut = await csv(short)
  assert.deepEqual([...refusal(cut), cut.body.data.details.maximum], [413, 'result_too_large', MAX_ROWS])
  assert.deepEqual(refusal(await csv({ ...short, limit: MAX_ROWS + 1 })), [400, 'limit_too_large'])
  assert.equal((await csv({ ...short, limit: MAX_ROWS })).text.split('\r\n').length, MAX_ROWS + 2)
  // Six megabytes, three times what may wait in memory: the answer has begun when the rows turn out to be too many.
  await assert.rejects(csv({ table_name: 'filler' }), /terminated|aborted|closed|content-length/i)
  const complete = await csv({ table_name: 'filler', limit: MAX_ROWS, sort_by: 'id' })
  const lines = Array.from({ length: MAX_ROWS }, (_, index) => `${index + 1},${'x'.repeat(20_000)}\r\n`)
  assert.ok(complete.text === `id,text\r\n${lines.join('')}`)
})

test('a reader of CSV who leaves frees the connection', async () => {
  for (let round = 0; round < 6; round++) {
    await new Promise<void>((resolve, reject) => {
      const headers = { ...books.headers, ...CSV.headers, 'content-type': 'application/json' }
      const asking = request(`${t.url}/gateway/fetch`, { method: 'POST', headers }, (response) => {
        response.once('data', () => response.destroy()).once('close', resolve)
      }).on('error', reject)
      asking.end(JSON.stringify({ table_name: 'filler', limit: MAX_ROWS }))
    })
  }
  assert.equal((await csv({ ...all, columns: 'id', limit: 1 })).text, 'id\r\n1\r\n')
})

test('groups and operations that write have no CSV, and nothing is written', async () => {
  const grouped = await csv({ ...all, group_by: 'word' })
  assert.deepEqual(
    [...refusal(grouped), grouped.body.data.details.available],
    [406, 'not_acceptable', ['application/json']],
  )
  const row = { table_name: 'author', insert_body: { id: 2, name: 'Bob' } }
  assert.deepEqual(refusal(await books.send('PUT', '/gateway/insert', { body: row, ...CSV })), [
    406,
    'not_acceptable',
  ])
  assert.deepEqual(await sql('select id from author'), [{ id: 1 }])
})

test('failures are JSON in the envelope', async () => {
  const missing = await csv({ table_name: 'nowhere' })
  assert.deepEqual(refusal(missing), [404, 'table_not_found'])
  assert.match(missing.headers.get('content-type') ?? '', /^application\/json/)
  assert.deepEqual(refusal(await books.post('/gateway/fetch?format=xml', all)), [400, 'validation_error'])
})

test('a client that has JSON only answers the same CSV', async () => {
  const body = {
    table_name: 'cell',
    sort_by: 'id',
    columns: ['id', 'word', 'price', 'ok', 'tags', 'more'],
    limit: 5,
  }
  const own = await csv(body)
  const other = await csv(body, on('shop'))
  assert.equal(other.status, 200, other.text)
  // A backend that writes JSON does not tell a JSON null from NULL.
  assert.equal(other.text, own.text.replace(',null\r\n', ',\r\n'))
})

test('a public route answers CSV within its record', async () => {
  const record = {
    client_name: 'books',
    requires_key: false,
    allowed_ops: ['fetch', 'insert'],
    table_name: 'cell',
    columns: ['id', 'word'],
    conditions: [{ column: 'id', operator: 'gt', value: 3 }],
  }
  const routes = [
    { ...record, route_key: 'cells' },
    {
      route_key: 'one',
      client_name: 'books',
      requires_key: false,
      allowed_ops: ['query'],
      query: 'select 1 as one',
    },
  ]
  for (const route of routes) assert.equal((await t.admin.post('/admin/public-routes', route)).status, 201)
  const read = await t.anon.post('/public/cells/fetch', { sort_by: 'id' }, CSV)
  assert.equal(read.text, 'id,word\r\n4,=1+1\r\n5, ä 🎉 \\ \r\n')
  const wider = await t.anon.post('/public/cells/fetch', { columns: ['more'] }, CSV)
  assert.deepEqual(refusal(wider), [400, 'unknown_column'])
  const insert = await t.anon.post('/public/cells/insert', { insert_body: { id: 9 } }, CSV)
  assert.deepEqual(refusal(insert), [406, 'not_acceptable'])
  assert.deepEqual(await sql('select id from cell where id = 9'), [])
  assert.equal((await t.anon.post('/public/one/query?format=csv', {})).text, 'one\r\n1\r\n')
})

test('an event of a read as CSV has no rows, and says so', async () => {
  const { kernel } = t.service
  await addWebhook(kernel, { url: 'https://example.com/', routeKey: 'gateway_fetch', clientName: 'books' })
  assert.equal((await csv({ table_name: 'author', limit: 1 })).status, 200)
  const [event] = await kernel.db.selectFrom('webhookEvent').select('body').execute()
  const { data } = JSON.parse(event?.body ?? '')
  assert.deepEqual([data.table, data.rows, data.rows_omitted], ['public.author', undefined, true])
})
