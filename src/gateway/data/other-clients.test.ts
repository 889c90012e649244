import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Answer, testService } from '#test/harness.ts'

/** Requests of client libraries for other services with this protocol. */

const t = await testService()
const key = await t.key(['gateway.*'])
const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))
const fetchPets = (more: object) =>
  key.post('/gateway/fetch', { table_name: 'pet', columns: 'id', sort_by: 'id', ...more })
const ids = (answer: Answer) => {
  assert.equal(answer.status, 200, answer.text)
  return answer.body.data.map(({ id }: { id: number }) => id)
}

before(() =>
  sql(`
    create table pet (id int primary key, name text, owner text);
    insert into pet values (1, 'A', null), (2, 'B', 'Ada'), (3, 'C,D', 'Bob');
    create function older(than int) returns setof pet language sql as $$ select * from pet where id > than $$`),
)

/** A body with null for every optional member of the OpenAPI document. */
const operationOf = (path: string, method: string) => {
  // Fastify's type of the document is wider.
  const { paths, components } = t.service.app.swagger() as unknown as {
    paths: Record<string, Record<string, { requestBody: { content: Record<string, { schema: Shape }> } }>>
    components: { schemas: Record<string, Shape> }
  }
  const shape = paths[path]?.[method]?.requestBody.content['application/json']?.schema ?? {}
  const name = shape.$ref?.split('/').at(-1)
  return name === undefined ? shape : (components.schemas[name] ?? {})
}
type Shape = { readonly $ref?: string; readonly properties?: Readonly<Record<string, unknown>> }

test('null means absent in every optional member of a body', async () => {
  const cases: readonly (readonly [path: string, method: string, needed: object])[] = [
    ['/gateway/fetch', 'post', { table_name: 'pet' }],
    ['/query/count', 'post', { table_name: 'pet' }],
    ['/gateway/insert', 'put', { table_name: 'pet', insert_body: { id: 10, name: null } }],
    [
      '/gateway/update',
      'post',
      { table_name: 'pet', set: { owner: null }, conditions: [{ column: 'id', value: 10 }] },
    ],
    ['/gateway/delete', 'delete', { table_name: 'pet', conditions: [{ column: 'id', value: 10 }] }],
    [
      '/gateway/transaction',
      'post',
      { operations: [{ id: 'a', kind: 'fetch', payload: { table_name: 'pet' } }] },
    ],
    ['/gateway/rpc', 'post', { function: 'older', args: { than: 1 } }],
    ['/gateway/query', 'post', { query: 'select 1' }],
    ['/query/sql', 'post', { query: 'select 1', driver: 'postgresql' }],
  ]
  for (const [path, method, needed] of cases) {
    const members = Object.keys(operationOf(path, method).properties ?? {})
    assert.ok(members.length > 0, path)
    const nulls = Object.fromEntries(members.map((name) => [name, null]))
    const answer = await key.send(method.toUpperCase(), path, { body: { ...nulls, ...needed } })
    assert.equal(answer.status, 200, `${path}: ${answer.text}`)
  }
})

test('null means absent inside conditions, sorts, payloads and options, but is a value in values', async () => {
  const nulls = { column_cast: null, value_cast: null, eq_column: null, eq_value: null, eq_column_cast: null }
  assert.deepEqual(
    ids(await fetchPets({ conditions: [{ operator: null, column: 'id', value: 2, ...nulls }] })),
    [2],
  )
  assert.deepEqual(
    ids(await fetchPets({ conditions: [{ operator: 'gt', column: 'id', value: 2, ...nulls }] })),
    [3],
  )
  assert.deepEqual(
    ids(await fetchPets({ conditions: [{ column: null, value: null, eq_column: 'id', eq_value: 3 }] })),
    [3],
  )
  assert.deepEqual(ids(await fetchPets({ conditions: [{ column: 'owner', value: null, ...nulls }] })), [1])
  assert.deepEqual(ids(await fetchPets({ conditions: [{ eq_column: 'owner', eq_value: null }] })), [1])
  assert.deepEqual(
    ids(await fetchPets({ sort_by: [{ field: 'id', direction: null, nulls: null, column: null }] })),
    [1, 2, 3],
  )
  const payload = {
    table_name: 'pet',
    limit: null,
    group_by: null,
    columns: null,
    select: null,
    conditions: null,
    count: null,
  }
  const options = { isolation_level: null, read_only: null }
  const operations = [{ id: 'a', kind: 'fetch', payload }]
  const done = await key.post('/gateway/transaction', { operations, options, idempotency_key: null })
  assert.equal(done.status, 200, done.text)
  const called = await key.post('/rpc/older', { args: { than: null }, limit: null, order: null })
  assert.deepEqual([called.status, called.body.data], [200, []], called.text)
})

test('null in a required member is rejected, and PATCH of a record stores null', async () => {
  assert.equal((await key.post('/gateway/fetch', { table_name: null })).status, 400)
  assert.equal((await key.post('/gateway/query', { query: null })).status, 400)
  const { body } = await t.admin.post('/admin/api-keys', {
    name: 'k',
    rights: ['pet.read'],
    description: 'd',
    client_name: null,
  })
  const url = `/admin/api-keys/${body.data.record.id}`
  const changed = await t.admin.send('PATCH', url, { body: { description: null } })
  assert.deepEqual([changed.status, changed.body.data.description], [200, null], changed.text)
  assert.equal((await t.admin.send('PATCH', url, { body: { name: null } })).status, 400)
})

test('a list of `in` may be in braces, or without any after `not`', async () => {
  const cases: readonly (readonly [object, number[]])[] = [
    [{ operator: 'or', value: 'name.in.{A,B}' }, [1, 2]],
    [{ operator: 'or', value: 'name.in.{A,"C,D"},id.eq.2' }, [1, 2, 3]],
    [{ operator: 'or', value: 'id.in.{},id.in.(3)' }, [3]],
    [{ operator: 'in', column: 'name', value: '{A,B}' }, [1, 2]],
    [{ operator: 'not', column: 'name', value: 'in.{A,B}' }, [3]],
    [{ operator: 'not', column: 'name', value: 'in.(A,B)' }, [3]],
    [{ operator: 'not', column: 'name', value: 'in.A,"C,D"' }, [2]],
    [{ operator: 'not', column: 'name', value: 'not.in.A,B' }, [1, 2]],
    [{ operator: 'not', column: 'name', value: ['A', 'C,D'] }, [2]],
    [{ operator: 'not', value: 'name.in.{A,B}' }, [3]],
  ]
  for (const [condition, expected] of cases)
    assert.deepEqual(ids(await fetchPets({ conditions: [condition] })), expected, JSON.stringify(condition))
  for (const value of ['name.in.{A,B', 'name.in.{A,B)', 'name.in.(A,B}'])
    assert.equal((await fetchPets({ conditions: [{ operator: 'or', value }] })).status, 400, value)
})

test('a key for an impossible client name is rejected', async () => {
  const issue = (more: object) =>
    t.admin.post('/admin/api-keys', { name: 'k', rights: ['pet.read'], ...more })
  for (const name of ['', 'two words', '1st', 'a.b', 'ä', 'null\u200b']) {
    const refused = await issue({ client_name: name })
    assert.deepEqual([refused.status, refused.body.data.details.field], [400, 'client_name'], refused.text)
    const overrides = await issue({ client_overrides: ['*', name] })
    assert.deepEqual(
      [overrides.status, overrides.body.data.details.field],
      [400, 'client_overrides'],
      overrides.text,
    )
  }
  const { body } = await issue({ client_name: 'not-made-yet', client_overrides: ['*', 'custom_supabase'] })
  const change = await t.admin.send('PATCH', `/admin/api-keys/${body.data.record.id}`, {
    body: { client_name: 'two words' },
  })
  assert.equal(change.status, 400)
})
