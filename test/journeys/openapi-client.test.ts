import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADMIN_KEY, testService } from '#test/harness.ts'
import { type Answered, type Credentials, documentClient, type Given, type Operation } from './document.ts'

const t = await testService()
const client = await documentClient(t.url)
const admin: Credentials = { adminKey: ADMIN_KEY }
const done = new Set<string>()
/** What the story has to do: the data plane. What else the document has is asked as its examples say, whatever comes of it. */
const STORY =
  /^\w+ \/(gateway|query|rpc|data|schema|health|ping|metrics|openapi.json|clients|admin\/(clients|api-key|rights)|management\/(tables$|capabilities))|^GET \/$/

/** Of one of the operations whose names the story knows; everything else about it comes from the document. */
async function does(name: string, given: Given = {}): Promise<Answered> {
  const answer = await client.call(name, given)
  assert.ok(answer.status < 300, `${name}: ${answer.text}`)
  done.add(name)
  return answer
}

test('who knows only the document can do everything that it describes', async (context) => {
  await context.test('looking around, without a key', async () => {
    for (const path of ['/', '/ping', '/health', '/health/live', '/health/ready', '/openapi.json'])
      await does(`GET ${path}`)
  })

  const key: Credentials = { apiKey: '' }
  const id = { value: '' }
  await context.test('the operator looks after keys', async () => {
    await does('GET /metrics', { as: admin })
    await does('GET /admin/rights/catalog', { as: admin })
    const issued = await does('POST /admin/api-keys', {
      as: admin,
      body: { name: 'story', rights: ['*'], client_name: 'default' },
    })
    id.value = issued.body.data.record.id
    Object.assign(key, { apiKey: issued.body.data.api_key })
    await does('GET /admin/api-keys', { as: admin, parameters: { client_name: 'default', limit: '5' } })
    const parameters = { id: id.value }
    await does('GET /admin/api-keys/{id}', { as: admin, parameters })
    await does('PATCH /admin/api-keys/{id}', { as: admin, parameters, body: { description: 'of the story' } })
    const rotated = await does('POST /admin/api-keys/{id}/rotate', { as: admin, parameters })
    Object.assign(key, { apiKey: rotated.body.data.api_key })
    await does('GET /admin/api-key-config', { as: admin })
    await does('PUT /admin/api-key-config', { as: admin, body: { enforce_api_keys: null } })
    await does('PUT /admin/api-key-clients/{client_name}', {
      as: admin,
      parameters: { client_name: 'default' },
    })
    await does('DELETE /admin/api-key-clients/{client_name}', {
      as: admin,
      parameters: { client_name: 'default' },
    })
  })

  await context.test('the operator looks after clients', async () => {
    await does('GET /clients', { as: admin })
    await does('GET /schema/clients', { as: admin })
    await does('POST /admin/clients', {
      as: admin,
      body: { client_name: 'second', driver: 'postgresql', url: t.clientUrl },
    })
    const parameters = { name: 'second' }
    await does('PATCH /admin/clients/{name}', {
      as: admin,
      parameters,
      body: { description: 'the same again' },
    })
    await does('PUT /admin/clients/{name}/freeze', { as: admin, parameters, body: { is_frozen: true } })
    await does('GET /admin/clients', { as: admin })
    await does('DELETE /admin/clients/{name}', { as: admin, parameters })
  })

  await context.test('a table is made and described', async () => {
    await does('GET /management/capabilities', { as: key })
    await does('POST /management/tables', { as: key })
    await does('GET /schema/tables', { as: key })
    for (const part of ['columns', 'constraints', 'indexes']) await does(`GET /schema/${part}`, { as: key })
    await does('GET /schema/types', { as: key })
  })

  await context.test('rows come, change and go, as the examples have it', async () => {
    const read = (name: string, given: Given = {}) => does(name, { as: key, ...given })
    const [inserted] = (await read('PUT /gateway/insert', { parameters: { 'x-service-insert-window': '5' } }))
      .body.data
    assert.equal(inserted.title, 'Notes on the Analytical Engine')
    await read('POST /gateway/insert')
    for (const name of ['POST /gateway/fetch', 'POST /gateway/data', 'GET /data']) {
      const { body } = await read(name, { parameters: { 'x-strip-nulls': 'true' } })
      assert.ok(body.data.length > 0, `${name} finds the rows of the examples`)
    }
    const grouped = await read('POST /gateway/fetch', {
      body: {
        table_name: 'books',
        group_by: 'author',
        aggregation_column: 'pages',
        aggregation_strategy: 'cumulative_sum',
        limit: 10,
        count: 'exact',
      },
    })
    assert.equal(grouped.body.post_processing.grouped[0].label, 'Ada Lovelace')
    await read('GET /data', {
      parameters: { view: 'books', eq_column: 'author', eq_value: 'Ada Lovelace', group_by: 'author' },
    })
    assert.equal((await read('POST /query/count')).body.count, 2)
    assert.equal((await read('POST /gateway/update')).body.affected_rows, 2)
    await read('POST /gateway/transaction', { parameters: { 'idempotency-key': 'story' } })
    assert.ok((await read('POST /gateway/delete')).body.affected_rows > 0)
    await read('DELETE /gateway/delete')
  })

  await context.test('SQL runs, and functions are called', async () => {
    await does('POST /query/sql', {
      as: key,
      body: {
        driver: 'postgresql',
        query: 'create function add(a int, b int) returns int language sql immutable return a + b',
      },
    })
    await does('POST /gateway/sql', { as: key })
    assert.deepEqual((await does('POST /gateway/query', { as: key })).body.data, [{ one: 1 }])
    for (const name of ['POST /gateway/rpc', 'POST /rpc/{name}'])
      assert.deepEqual((await does(name, { as: key })).body.data, [{ add: 3 }])
    assert.deepEqual((await does('GET /rpc/{name}', { as: key, parameters: { a: '1', b: '2' } })).body.data, [
      { add: 3 },
    ])
  })

  await context.test('what is refused is refused as the document says', async () => {
    for (const [name, operation] of client.operations) {
      const as = name.includes('/admin/') || name.endsWith('clients') ? admin : key
      // One of the ways in may ask for nothing: then a credential only shows more.
      const isLocked =
        operation.security.length > 0 && operation.security.every((way) => Object.keys(way).length > 0)
      if (isLocked) {
        await isRefused(name, [401], {})
        await isRefused(name, [401], { as: { apiKey: 'svc_0123456789abcdef.nobody' } })
      }
      if (operation.parameters.some(({ name: header }) => header === 'X-Service-Client')) {
        const parameters = { 'X-Service-Client': 'nobody' }
        await isRefused(name, [400], { as, parameters })
      }
      if (operation.parameters.some(({ in: place }) => place === 'path'))
        await isRefused(name, [400, 404, 409], { as, parameters: nobody(operation) })
    }
  })

  await context.test('what the story leaves out still answers as the document says', async () => {
    for (const name of client.operations.keys()) {
      if (done.has(name) || STORY.test(name)) continue
      await client.call(name, { as: name.includes('/admin/') ? admin : key })
    }
  })

  await does('DELETE /admin/api-keys/{id}', { as: admin, parameters: { id: id.value } })
  const left = [...client.operations.keys()].filter((name) => STORY.test(name) && !done.has(name))
  assert.deepEqual(left, [], 'every operation of the data plane is done')
})

async function isRefused(name: string, statuses: readonly number[], given: Given): Promise<void> {
  const { status, text } = await client.call(name, given)
  assert.ok(statuses.includes(status), `${name}: ${status} ${text}`)
}

/** A place in the path where nothing is. */
const nobody = ({ parameters }: Operation): Record<string, string> =>
  Object.fromEntries(parameters.flatMap(({ name, in: place }) => (place === 'path' ? [[name, NOBODY]] : [])))
const NOBODY = '01a1fed6-8936-7ac3-bdf5-1fc3f49efcc6'
