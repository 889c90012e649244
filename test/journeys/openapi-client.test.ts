import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ADMIN_KEY, testService } from '#test/harness.ts'
import { createSecuredClient } from '#test/secured-client.ts'
import {
  type Answered,
  type CallArguments,
  type Credentials,
  createDocumentClient,
  type Operation,
} from './document.ts'

const secured = await createSecuredClient()
const t = await testService({ builtIn: secured.builtIn })
after(async () => {
  await t.stop()
  await secured.drop()
})
const client = await createDocumentClient(t.url)
const admin: Credentials = { adminKey: ADMIN_KEY }
const done = new Set<string>()
/** Operations of the data plane, which must all be called below. Other operations are called with their examples, with any outcome. */
const DATA_PLANE =
  /^\w+ \/(gateway|query|rpc|data|schema|health|ping|metrics|openapi.json|clients|admin\/(clients|api-key|rights)|management\/(tables$|capabilities))|^GET \/$/

/** Calls an operation by name. Everything else comes from the document. */
async function succeeds(name: string, given: CallArguments = {}): Promise<Answered> {
  let answer = await client.call(name, given)
  // A check that a busy machine does not answer within two seconds counts as failed.
  while (name === 'GET /health/ready' && answer.status === 503) answer = await client.call(name, given)
  assert.ok(answer.status < 300, `${name}: ${answer.text}`)
  done.add(name)
  return answer
}

test('a client that is built from the document alone can use the whole data plane', async (context) => {
  await context.test('reads public endpoints without a key', async () => {
    for (const path of [
      '/',
      '/ping',
      '/health',
      '/health/live',
      '/health/ready',
      '/health/cluster',
      '/openapi.json',
    ])
      await succeeds(`GET ${path}`)
  })

  const key: Credentials = { apiKey: '' }
  const id = { value: '' }
  await context.test('manages keys as the operator', async () => {
    await succeeds('GET /metrics', { as: admin })
    await succeeds('GET /admin/rights/catalog', { as: admin })
    await succeeds('POST /admin/rights/resolve', { as: admin, body: { rights: ['books.read'] } })
    const issued = await succeeds('POST /admin/api-keys', {
      as: admin,
      body: { name: 'story', rights: ['*'], client_name: 'default' },
    })
    id.value = issued.body.data.record.id
    Object.assign(key, { apiKey: issued.body.data.api_key })
    await succeeds('GET /admin/api-keys', { as: admin, parameters: { client_name: 'default', limit: '5' } })
    const parameters = { id: id.value }
    await succeeds('GET /admin/api-keys/{id}', { as: admin, parameters })
    await succeeds('PATCH /admin/api-keys/{id}', {
      as: admin,
      parameters,
      body: { description: 'of the story' },
    })
    const rotated = await succeeds('POST /admin/api-keys/{id}/rotate', { as: admin, parameters })
    Object.assign(key, { apiKey: rotated.body.data.api_key })
    await succeeds('GET /admin/api-key-config', { as: admin })
    await succeeds('PUT /admin/api-key-config', { as: admin, body: { enforce_api_keys: null } })
    await succeeds('PUT /admin/api-key-clients/{client_name}', {
      as: admin,
      parameters: { client_name: 'default' },
    })
    await succeeds('DELETE /admin/api-key-clients/{client_name}', {
      as: admin,
      parameters: { client_name: 'default' },
    })
  })

  await context.test('manages clients as the operator', async () => {
    await succeeds('GET /clients', { as: admin })
    await succeeds('GET /schema/clients', { as: admin })
    await succeeds('POST /admin/clients', {
      as: admin,
      body: { client_name: 'second', driver: 'postgresql', url: t.clientUrl },
    })
    const parameters = { name: 'second' }
    await succeeds('PATCH /admin/clients/{name}', {
      as: admin,
      parameters,
      body: { description: 'the same again' },
    })
    await succeeds('PUT /admin/clients/{name}/freeze', { as: admin, parameters, body: { is_frozen: true } })
    await succeeds('GET /admin/clients', { as: admin })
    await succeeds('DELETE /admin/clients/{name}', { as: admin, parameters })
  })

  await context.test('creates and describes a table', async () => {
    await succeeds('GET /management/capabilities', { as: key })
    await succeeds('POST /management/tables', { as: key })
    await succeeds('GET /schema/tables', { as: key })
    for (const part of ['columns', 'constraints', 'indexes'])
      await succeeds(`GET /schema/${part}`, { as: key })
    await succeeds('GET /schema/types', { as: key })
  })

  await context.test('inserts, updates and deletes rows as in the examples', async () => {
    const read = (name: string, given: CallArguments = {}) => succeeds(name, { as: key, ...given })
    const [inserted] = (await read('PUT /gateway/insert', { parameters: { 'x-service-insert-window': '5' } }))
      .body.data
    assert.equal(inserted.title, 'Notes on the Analytical Engine')
    await read('POST /gateway/insert')
    for (const name of ['POST /gateway/fetch', 'POST /gateway/data', 'GET /data']) {
      const { body } = await read(name, { parameters: { 'x-strip-nulls': 'true' } })
      assert.ok(body.data.length > 0, `${name} returns the rows of the examples`)
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
    const imported = await read('POST /gateway/import', { parameters: { table_name: 'books' } })
    assert.equal(imported.body.affected_rows, 1)
    assert.equal((await read('POST /gateway/update')).body.affected_rows, 3)
    await read('POST /gateway/transaction', { parameters: { 'idempotency-key': 'story' } })
    assert.ok((await read('POST /gateway/delete')).body.affected_rows > 0)
    await read('DELETE /gateway/delete')
  })

  await context.test('runs SQL and calls functions', async () => {
    await succeeds('POST /query/sql', {
      as: key,
      body: {
        driver: 'postgresql',
        query: 'create function add(a int, b int) returns int language sql immutable return a + b',
      },
    })
    await succeeds('POST /gateway/sql', { as: key })
    assert.deepEqual((await succeeds('POST /gateway/query', { as: key })).body.data, [{ one: 1 }])
    for (const name of ['POST /gateway/rpc', 'POST /rpc/{name}'])
      assert.deepEqual((await succeeds(name, { as: key })).body.data, [{ add: 3 }])
    assert.deepEqual(
      (await succeeds('GET /rpc/{name}', { as: key, parameters: { a: '1', b: '2' } })).body.data,
      [{ add: 3 }],
    )
  })

  await context.test('errors are as documented', async () => {
    for (const [name, operation] of client.operations) {
      const as = name.includes('/admin/') || name.endsWith('clients') ? admin : key
      // If a security requirement is empty, credentials are optional.
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
        await isRefused(name, [400, 404, 409], { as, parameters: unknownParameters(operation) })
    }
  })

  await context.test('all other operations return documented responses', async () => {
    for (const name of client.operations.keys()) {
      if (done.has(name) || DATA_PLANE.test(name)) continue
      await client.call(name, { as: name.includes('/admin/') ? admin : key })
    }
  })

  await succeeds('PUT /admin/clients/{name}/row-level-security', {
    as: admin,
    parameters: { name: 'default' },
  })
  await succeeds('DELETE /admin/api-keys/{id}', { as: admin, parameters: { id: id.value } })
  const left = [...client.operations.keys()].filter((name) => DATA_PLANE.test(name) && !done.has(name))
  assert.deepEqual(left, [], 'every operation of the data plane was called')
})

async function isRefused(name: string, statuses: readonly number[], given: CallArguments): Promise<void> {
  const { status, text } = await client.call(name, given)
  assert.ok(statuses.includes(status), `${name}: ${status} ${text}`)
}

/** A path parameter that names nothing. */
const unknownParameters = ({ parameters }: Operation): Record<string, string> =>
  Object.fromEntries(
    parameters.flatMap(({ name, in: place }) => (place === 'path' ? [[name, UNKNOWN_ID]] : [])),
  )
const UNKNOWN_ID = '01a1fed6-8936-7ac3-bdf5-1fc3f49efcc6'
