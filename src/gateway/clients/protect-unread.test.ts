import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Actor, actor, controlDatabase, testService } from '#test/harness.ts'
import { createSecuredClient } from '#test/secured-client.ts'

const secured = await createSecuredClient()
const { sql, builtIn } = secured
const controlUrl = await controlDatabase()
const t = await testService({ controlUrl, builtIn })
const other = await testService({ controlUrl, builtIn })
after(async () => {
  await Promise.all([t.stop(), other.stop()])
  await secured.drop()
})
await sql('create table book (id int primary key); insert into book values (1)')
const operator = await t.key(['*', 'gateway.bypass_row_level_security'])
const reader = await t.key(['book.*'])
const booksOf = async (who: Actor, url: string) => {
  const { status, body } = await actor(url, who.headers).post('/gateway/fetch', { table_name: 'book' })
  return status === 200 ? body.data.length : body.code
}
const protect = () =>
  t.admin.send('PUT', '/admin/clients/default/row-level-security', { body: { enabled: true } })
const onControl = (text: string) => withClient(controlUrl, (client) => client.query(text))

test('a process that cannot read whether it is switched on keeps callers to the policies', async () => {
  // From then on the process answers for these keys from its caches.
  assert.deepEqual([await booksOf(reader, other.url), await booksOf(operator, other.url)], [1, 1])
  assert.equal((await protect()).status, 200)
  await onControl('alter table service.protected_client rename to unreadable')
  assert.equal(await booksOf(reader, other.url), 'permission_denied')
  assert.equal(await booksOf(operator, other.url), 1)
  await onControl('alter table service.unreadable rename to protected_client')
  assert.equal(await booksOf(reader, other.url), 'permission_denied')
})
