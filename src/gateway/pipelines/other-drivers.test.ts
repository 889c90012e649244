import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { startPostgrestEndpoint } from '#test/postgrest/endpoint.ts'

const [here, there] = [await testDatabase(), await testDatabase()]
const sql = (url: string, text: string) => withClient(url, async (client) => (await client.query(text)).rows)
await sql(
  here.url,
  `create table book (id int primary key, pages int); insert into book select n, n from generate_series(1, 300) n;
  create table back (id int primary key, pages int);
  create table reader (id int primary key, pages int, is_admin boolean default false)`,
)
await sql(
  there.url,
  'create table shelf (id int primary key, pages int check (pages <> 123)); create table reader (id int primary key, pages int)',
)
const endpoint = await startPostgrestEndpoint(there.url)
const t = await testService({
  config: { clients: { here: { url: here.url }, project: { driver: 'supabase', url: endpoint.url } } },
})
after(async () => {
  await t.stop()
  endpoint.close()
  await Promise.all([here.drop(), there.drop()])
})
const key = await t.key(['*'], { client_name: null })
const run = (body: object) => key.post('/pipelines', body, { headers: { 'x-service-client': 'here' } })

test('a Supabase project is a sink, and a source of a bounded number of rows', async () => {
  const into = await run({ source: { table_name: 'book' }, sink: { table_name: 'shelf', client: 'project' } })
  assert.deepEqual([into.status, into.body.rows_inserted], [200, 299], into.text.slice(-500))
  assert.deepEqual(
    into.body.errors.map(({ index, code }: { index: number; code: string }) => [index, code]),
    [[122, 'check_violation']],
  )
  const unbounded = { source: { table_name: 'shelf', client: 'project' }, sink: { table_name: 'back' } }
  const refused = await run(unbounded)
  assert.deepEqual([refused.status, refused.body.code], [400, 'unsupported_by_driver'])
  const from = await run({ ...unbounded, source: { ...unbounded.source, limit: 1_000 } })
  assert.deepEqual([from.status, from.body.rows_inserted], [200, 299], from.text.slice(-500))
})

test('a source that returns other columns than were asked for writes none of them', async () => {
  endpoint.intercept = (request, response) => {
    if (!request.url?.includes('/reader?')) return false
    response.setHeader('content-type', 'application/json')
    response.end('[{"id":1,"pages":2,"is_admin":true}]')
    return true
  }
  for (const column_aliases of [{}, { pages: null }]) {
    const { status, body } = await run({
      source: { table_name: 'reader', client: 'project', limit: 1 },
      transform: { column_aliases },
      sink: { table_name: 'reader' },
    })
    assert.deepEqual([status, body.code, body.data?.details.rows_inserted], [502, 'database_error', 0])
  }
  assert.deepEqual(await sql(here.url, 'select * from reader'), [])
})
