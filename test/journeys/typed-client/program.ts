/**
 * A program that uses only a client generated from /openapi.json, without casts or types of its own. typed-client.test.ts generates
 * `schema.ts` from the document, type-checks this file against it and runs it.
 */
import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.ts'

const [url = '', apiKey = ''] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl: url })
const params = { header: { 'X-Service-Client': 'default' } }
const headers = { apikey: apiKey }

await signUpAndIn()
await makeTable()
await keepBooks()
await runTogether()
await beRefused()

async function signUpAndIn(): Promise<void> {
  const account = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }
  const { data: signedUp } = await client.POST('/api/auth/sign-up/email', { body: account })
  assert.ok(signedUp?.token)
  const { data: signedIn } = await client.POST('/api/auth/sign-in/email', { body: account })
  // Without a token, the sign-in goes on with a second factor.
  assert.ok(signedIn?.token)
  assert.equal(signedIn.user?.email, account.email)
  const { data: current } = await client.GET('/api/auth/get-session', {
    headers: { authorization: `Bearer ${signedIn.token}` },
  })
  const user: components['schemas']['FullUser'] | undefined = current?.user
  assert.equal(user?.name, 'Ada')
  // @ts-expect-error: the password is required
  await client.POST('/api/auth/sign-in/email', { body: { email: account.email } })
}

async function makeTable(): Promise<void> {
  const { data } = await client.POST('/management/tables', {
    params,
    headers,
    body: {
      table_name: 'books',
      columns: [
        { name: 'title', data_type: 'text', nullable: false },
        { name: 'author', data_type: 'text' },
        { name: 'pages', data_type: 'integer' },
      ],
    },
  })
  assert.deepEqual(
    data?.data.columns.map(({ name }) => name),
    ['id', 'title', 'author', 'pages'],
  )
}

async function keepBooks(): Promise<void> {
  const table_name = 'books'
  const options = { params, headers }
  const inserted = await client.PUT('/gateway/insert', {
    ...options,
    body: {
      table_name,
      insert_body: [
        { title: 'Notes', author: 'Ada', pages: 66 },
        { title: 'Art', author: 'Donald', pages: 3168 },
        { title: 'Untitled' },
      ],
    },
  })
  assert.equal(inserted.data?.affected_rows, 3)

  const ascending: components['schemas']['SortBy'] = { field: 'pages', direction: 'asc' }
  const titles = async (conditions: components['schemas']['Condition'][]) => {
    const { data } = await client.POST('/gateway/fetch', {
      ...options,
      body: { table_name, columns: ['title'], conditions, sort_by: ascending, count: 'exact' },
    })
    assert.equal(data?.count, data?.data.length)
    return data?.data.map(({ title }) => title)
  }
  assert.deepEqual(await titles([{ column: 'pages', operator: 'gt', value: 50 }]), ['Notes', 'Art'])
  assert.deepEqual(await titles([{ eq_column: 'author', eq_value: 'Ada' }]), ['Notes'])
  assert.deepEqual(await titles([{ operator: 'or', value: 'pages.lt.100,author.is.null' }]), [
    'Notes',
    'Untitled',
  ])
  assert.deepEqual(
    await titles([
      {
        not: {
          or: [
            { column: 'pages', value: 66 },
            { eq_column: 'pages', eq_value: null },
          ],
        },
      },
    ]),
    ['Art'],
  )
  // @ts-expect-error: there is no such operator
  await titles([{ column: 'pages', operator: 'above', value: 50 }])

  const updated = await client.POST('/gateway/update', {
    ...options,
    body: { table_name, update_body: { pages: 67 }, conditions: [{ eq_column: 'title', eq_value: 'Notes' }] },
  })
  assert.equal(updated.data?.data[0]?.pages, 67)
  const deleted = await client.DELETE('/gateway/delete', {
    ...options,
    body: { table_name, conditions: { eq_column: 'title', eq_value: 'Untitled' } },
  })
  assert.equal(deleted.data?.affected_rows, 1)
  const counted = await client.POST('/query/count', { ...options, body: { table_name } })
  assert.equal(counted.data?.count, 2)
  // @ts-expect-error: a table is required
  await client.POST('/query/count', { ...options, body: {} })
}

async function runTogether(): Promise<void> {
  const { data } = await client.POST('/gateway/transaction', {
    params,
    headers,
    body: {
      operations: [
        { id: 'add', kind: 'insert', payload: { table_name: 'books', insert_body: { title: 'Sketches' } } },
        { id: 'look', kind: 'fetch', payload: { table_name: 'books', limit: 10 } },
      ],
    },
  })
  assert.equal(data?.results[1]?.data.length, 3)
}

async function beRefused(): Promise<void> {
  const { error, response } = await client.POST('/gateway/fetch', {
    params,
    headers,
    body: { table_name: 'nothing' },
  })
  assert.deepEqual([response.status, error?.code], [404, 'table_not_found'])
  const anonymous = await client.GET('/api/auth/get-session')
  assert.deepEqual([anonymous.response.status, anonymous.error?.code], [401, 'UNAUTHORIZED'])
}
