import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openStream } from '#test/event-stream.ts'
import { testService } from '#test/harness.ts'
import { createSecuredClient } from '#test/secured-client.ts'
import { whileArriving } from '#test/slow-body.ts'

const secured = await createSecuredClient()
const { sql, builtIn } = secured
const t = await testService({ builtIn })
after(async () => {
  await t.stop()
  await secured.drop()
})
await sql('create table book (id int primary key, title text)')
const operator = await t.key(['*', 'gateway.bypass_row_level_security', 'management.functions.write'])
const writer = await t.key(['book.*'])
const enabled = await operator.send('PUT', '/management/tables/book/realtime', { body: { enabled: true } })
assert.equal(enabled.status, 200, enabled.text)

test('a request whose body is arriving, and a stream that has begun, are kept to the policies too', async () => {
  const follow = (headers: Readonly<Record<string, string>>) =>
    openStream(`${t.url}/realtime`, { headers, body: { tables: [{ table_name: 'book' }] } })
  const [followed, kept] = [await follow(writer.headers), await follow(operator.headers)]
  await Promise.all([followed.next('ready'), kept.next('ready')])
  const answer = await whileArriving(
    t.url,
    {
      path: '/gateway/insert',
      headers: writer.headers,
      body: { table_name: 'book', insert_body: { id: 1, title: 'arriving' } },
    },
    async () => {
      const path = '/admin/clients/default/row-level-security'
      assert.equal((await t.admin.send('PUT', path, { body: { enabled: true } })).status, 200)
    },
  )
  assert.match(answer, /^HTTP\/1\.1 403 /)
  assert.match(answer, /permission_denied/)
  assert.deepEqual(await sql('select * from book'), [])
  const body = { table_name: 'book', insert_body: { id: 2, title: 'later' } }
  assert.equal((await operator.send('PUT', '/gateway/insert', { body })).status, 200)
  assert.equal((await kept.next('change')).data.row.title, 'later')
  await followed.ended
  assert.ok(!followed.seen.some(({ name }) => name === 'change'))
  kept.close()
})
