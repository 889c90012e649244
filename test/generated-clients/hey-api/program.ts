/**
 * Ten calls with the client that @hey-api/openapi-ts generates from /openapi.json with its default settings, without casts or types of its
 * own. generated-clients.slow.test.ts compiles this file with that client and runs it.
 */
import assert from 'node:assert/strict'
import { client } from './client/client.gen'
import {
  countRows,
  createTable,
  createWebhook,
  deleteRows,
  fetchRows,
  getSession,
  insertRows,
  runTransaction,
  signInEmail,
  signUpEmail,
} from './client/sdk.gen'
import type { Condition, GatewayErrorCode, User, WebhookRecord } from './client/types.gen'

const [url = '', apiKey = '', adminKey = ''] = process.argv.slice(2)
client.setConfig({ baseUrl: url })
const headers = { 'X-Service-Client': 'default' }
const asKey = { auth: apiKey, headers }
const table_name = 'films'

async function main(): Promise<void> {
  const account = { name: 'Ada', email: 'ada@hey.example.com', password: 'correct horse battery' }
  const signedUp = await signUpEmail({ body: account })
  const user: User | undefined = signedUp.data?.user
  assert.equal(user?.name, 'Ada')
  const signedIn = await signInEmail({ body: { email: account.email, password: 'another' } })
  assert.deepEqual([signedIn.response?.status, signedIn.error?.code], [401, 'INVALID_EMAIL_OR_PASSWORD'])
  const session = await getSession({ auth: signedUp.data?.token ?? '' })
  assert.equal(session.data?.session.userId, user?.id)

  const created = await createTable({
    ...asKey,
    body: {
      table_name,
      columns: [
        { name: 'title', data_type: 'text' },
        { name: 'year', data_type: 'integer' },
        {
          name: 'sequel_of',
          data_type: 'bigint',
          references: { table: table_name, column: 'id', on_delete: 'set null' },
        },
      ],
    },
  })
  assert.deepEqual(
    created.data?.data.columns.map(({ name }) => name),
    ['id', 'title', 'year', 'sequel_of'],
  )
  const inserted = await insertRows({
    ...asKey,
    body: {
      table_name,
      insert_body: [
        { title: 'Metropolis', year: 1927 },
        { title: 'Solaris', year: 1972 },
      ],
    },
  })
  assert.equal(inserted.data?.affected_rows, 2)
  const conditions: Condition[] = [{ column: 'year', operator: 'lt', value: 1950 }]
  const fetched = await fetchRows({ ...asKey, body: { table_name, columns: ['title'], conditions } })
  assert.deepEqual(fetched.data?.data, [{ title: 'Metropolis' }])
  const done = await runTransaction({
    ...asKey,
    body: {
      operations: [
        { id: 'all', kind: 'fetch', payload: { table_name, sort_by: { field: 'year', direction: 'desc' } } },
      ],
    },
  })
  assert.equal(done.data?.results[0]?.data.length, 2)
  const deleted = await deleteRows({ ...asKey, body: { table_name, conditions } })
  assert.equal(deleted.data?.affected_rows, 1)
  const counted = await countRows({ ...asKey, body: { table_name } })
  assert.equal(counted.data?.count, 1)
  const refused = await countRows({ headers, body: { table_name } })
  const code: GatewayErrorCode | undefined = refused.error?.code
  assert.deepEqual([refused.response?.status, code], [401, 'api_key_required'])
  const hook = await createWebhook({
    auth: adminKey,
    headers,
    body: { route_key: 'gateway_insert', url: 'https://example.com/hook', headers: { 'x-of': 'films' } },
  })
  const record: WebhookRecord | undefined = hook.data?.data
  assert.equal(record?.client_name, 'default')
}

main().catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
