import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, actor } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const ORIGIN = 'https://app.example.com'
const { t, users, adas, admin, createTable, secured, insert, fetched } = await createSecuredTables({
  auth: { trusted_origins: [ORIGIN] },
})
const { ada, bea } = users
await createTable('todo', [TEXT, USER])
await secured('todo', [{ preset: 'owner' }])
await insert(adas, 'todo', { text: 'of Ada' })
const route = {
  client_name: 'app',
  table_name: 'todo',
  allowed_ops: ['fetch', 'insert'],
  requires_key: false,
}
const made = await t.admin.post('/admin/public-routes', { ...route, route_key: 'todos' })
assert.equal(made.status, 201, made.text)

const { token: jwt } = (await ada.get('/api/auth/token')).body
const { apikey = '' } = adas.headers
const cookie = `${t.config.session.cookie_name}=${ada.token}`

/** Ada’s session, as a page that shows this user sends it. */
const pagesFor = ({ id }: { readonly id: string }): readonly Actor[] =>
  [
    { cookie, origin: ORIGIN },
    { authorization: `Bearer ${ada.token}` },
    { authorization: `Bearer ${jwt}` },
  ].map((proof) =>
    actor(t.url, { apikey, 'x-service-client': 'app', 'x-service-expected-user': id, ...proof }),
  )

test('a request that names its user reads and writes no row in a session of another one', async () => {
  for (const page of pagesFor(bea))
    for (const answer of [
      await page.post('/gateway/fetch', { table_name: 'todo' }),
      await insert(page, 'todo', { text: 'of Bea?' }),
      await page.post('/public/todos/fetch', {}),
      await page.post('/public/todos/insert', { insert_body: { text: 'of Bea?' } }),
    ])
      assert.deepEqual([answer.status, answer.body.code], [409, 'another_user'], answer.text)
  assert.deepEqual((await fetched(admin, 'todo')).length, 1)
  for (const page of pagesFor(ada)) assert.equal((await fetched(page, 'todo')).length, 1)
})
