import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { startPostgrestEndpoint } from '#test/postgrest/endpoint.ts'

const [here, there] = [await testDatabase(), await testDatabase()]
const sql = (url: string, text: string) => withClient(url, async (client) => (await client.query(text)).rows)
await sql(
  here.url,
  `create table book (id int primary key); insert into book values (1), (2);
  create view failing as select 1 / (id - 2) as id from book`,
)
await sql(
  there.url,
  `create table shelf (id int primary key); create table page (id int primary key); insert into page values (1), (2);
`,
)
const endpoint = await startPostgrestEndpoint(there.url)
const t = await testService({ config: { clients: { here: { url: here.url }, there: { url: there.url } } } })
after(async () => {
  await t.stop()
  endpoint.close()
  await Promise.all([here.drop(), there.drop()])
})
const BOOK = { table_name: 'book', client: 'here' }
const SHELF = { table_name: 'shelf', client: 'there' }

async function failed(body: object, rights = ['*']) {
  const who = await t.key(rights, { client_name: 'here' })
  const { status, body: answer } = await who.post('/pipelines', body, {
    headers: { 'x-service-client': 'here' },
  })
  const { step, client } = answer.data?.details ?? {}
  return [status, answer.code, step, client]
}

test('the failure of a run says which step it is about, and on which client', async () => {
  const cases: readonly (readonly [object, object, readonly unknown[], string[]?])[] = [
    [{ ...BOOK, table_name: 'none' }, SHELF, [404, 'table_not_found', 'source', 'here']],
    [BOOK, { ...SHELF, table_name: 'none' }, [404, 'table_not_found', 'sink', 'there']],
    [{ ...BOOK, columns: ['none'] }, SHELF, [400, 'unknown_column', 'source', 'here']],
    [BOOK, { ...SHELF, on_conflict: 'none' }, [400, 'unknown_column', 'sink', 'there']],
    [BOOK, SHELF, [403, 'insufficient_rights', 'source', 'here'], ['pipelines.run', 'shelf.write']],
    [BOOK, SHELF, [403, 'insufficient_rights', 'sink', 'there'], ['pipelines.run', 'book.read']],
    [{ ...BOOK, client: 'nowhere' }, SHELF, [400, 'unknown_client', 'source', 'nowhere']],
    [BOOK, { ...SHELF, client: 'nowhere' }, [400, 'unknown_client', 'sink', 'nowhere']],
    [{ ...BOOK, table_name: 'failing' }, SHELF, [422, 'invalid_value', 'source', 'here']],
  ]
  for (const [source, sink, expected, rights] of cases)
    assert.deepEqual(await failed({ source, sink }, rights), expected)
  assert.deepEqual(await sql(there.url, 'select from shelf'), [])
})

/** Runs from a registered Supabase project. While its answer is awaited, it is changed. */
async function changedMeanwhile(client_name: string, frozen: boolean, change: object, freeze?: boolean) {
  const made = await t.admin.post('/admin/clients', { client_name, driver: 'supabase', url: endpoint.url })
  assert.equal(made.status, 201, made.text)
  const setFrozen = (is_frozen: boolean) =>
    t.admin.send('PUT', `/admin/clients/${client_name}/freeze`, { body: { is_frozen } })
  await setFrozen(frozen)
  const held = Promise.withResolvers<ServerResponse>()
  endpoint.intercept = (request, response) => {
    if (!request.url?.includes('/page?')) return false
    endpoint.intercept = undefined
    held.resolve(response)
    return true
  }
  const key = await t.key(['*'], { client_name: 'here' })
  const source = { table_name: 'page', client: client_name, limit: 10 }
  const running = key.post('/pipelines', { source, sink: SHELF }, { headers: { 'x-service-client': 'here' } })
  const response = await held.promise
  if (freeze !== undefined) await setFrozen(freeze)
  const changed = await t.admin.send('PATCH', `/admin/clients/${client_name}`, { body: change })
  assert.equal(changed.status, 200, changed.text)
  response.setHeader('content-type', 'application/json').end('[{"id":1},{"id":2}]')
  const { status, body } = await running
  return [status, body.code ?? body.rows_inserted, body.data?.details?.step, body.data?.details?.client]
}

test('a Supabase source that stays where it is goes on, and a run says what has ended it', async () => {
  assert.deepEqual(await changedMeanwhile('thawed', true, { description: 'new' }, false), [200, 2, undefined, undefined]) // biome-ignore format: short
  assert.deepEqual(await changedMeanwhile('frozen', false, {}, true), [
    403,
    'client_frozen',
    'source',
    'frozen',
  ])
  const other = new URL(endpoint.url)
  other.hostname = 'localhost'
  assert.deepEqual(await changedMeanwhile('moved', false, { url: other.href }), [409, 'client_changed', 'source', 'moved']) // biome-ignore format: short
})
