import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import { type Actor, controlDatabase, testService } from '#test/harness.ts'
import { startProxy } from '#test/hostile/proxy.ts'

const controlUrl = await controlDatabase()
const database = await testDatabase()
const [control, client] = [await startProxy(controlUrl), await startProxy(database.url)]
const t = await testService({
  controlUrl: control.url,
  config: { clients: { far: { url: client.url } } },
})
after(async () => {
  await t.stop()
  await Promise.all([control.close(), client.close()])
  await database.drop()
})
const sql = (text: string) => withClient(database.url, async (one) => (await one.query(text)).rows)
const keyFor = async (rights: readonly string[]) => {
  const key = await t.key(rights, { client_name: 'far' })
  return { ...key, headers: { ...key.headers, 'x-service-client': 'far' } }
}
const admin = await keyFor(['management.*', 'gateway.*'])
await sql('create table note (id int primary key, text text)')
const path = '/management/tables/note/realtime'
const enabled = await admin.send('PUT', path, { body: { enabled: true }, headers: admin.headers })
assert.equal(enabled.status, 200, enabled.text)

const follow = async ({ headers }: Pick<Actor, 'headers'>): Promise<EventStream> => {
  const stream = await openStream(`${t.url}/realtime`, {
    headers,
    body: { tables: [{ table_name: 'note' }] },
  })
  await stream.next('ready')
  return stream
}
const inOrder = (rows: Iterable<object>): string =>
  JSON.stringify(
    [...rows].toSorted((one, other) => (one as { id: number }).id - (other as { id: number }).id),
  )

test('connections to the database that break lose no change', async () => {
  const stream = await follow(admin)
  for (let id = 1; id <= 20; id++) {
    await sql(`insert into note values (${id}, 'new'); update note set text = 'seen ${id}' where id % 3 = 0;
      delete from note where id = ${id - 3}`)
    if (id % 4 === 0) client.reset()
    if (id % 7 === 0) await stream.next('change')
  }
  const rows = await sql('select id, text from note order by id')
  await eventually(() => inOrder(pageOf(stream, 'note').values()) === JSON.stringify(rows))
  await sql('truncate note')
  await eventually(() => pageOf(stream, 'note').size === 0)
  stream.close()
})

test('while callers cannot be judged nothing is told, and afterwards only to those who still may', async () => {
  const [kept, lost] = [await keyFor(['note.read']), await keyFor(['note.read'])]
  const [stays, ends] = [await follow(kept), await follow(lost)]
  await control.cut()
  await eventually(() => !t.service.kernel.coherence.isTrusted())
  await withClient(controlUrl, (one) => one.query('delete from service.api_key where id = $1', [lost.keyId]))
  await sql(`insert into note values (1, 'later')`)
  await control.mend()
  assert.equal((await stays.next('change')).data.row.text, 'later')
  await ends.ended
  assert.deepEqual(ends.seen.at(-1)?.data, { reason: 'key_revoked' })
  assert.ok(!ends.seen.some(({ name }) => name === 'change'))
  stays.close()
})
