import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream } from '#test/event-stream.ts'
import { createRoutes } from '#test/public-routes.ts'

const other = await testDatabase()
const { t, sql, route, change } = await createRoutes({ config: { clients: { other: { url: other.url } } } })
after(async () => {
  await t.stop()
  await other.drop()
})
const onOther = (text: string) => withClient(other.url, (client) => client.query(text))
await onOther('create table book (id int primary key, title text, is_public boolean default true)')
await onOther(`insert into book values (7, 'Of the other')`)
const admin = await t.key(['*'])
const elsewhere = await t.key(['management.*'], { client_name: 'other' })
const path = '/management/tables/book/realtime'
for (const headers of [admin.headers, { ...elsewhere.headers, 'x-service-client': 'other' }]) {
  const enabled = await t.anon.send('PUT', path, { body: { enabled: true }, headers: { ...headers } })
  assert.equal(enabled.status, 200, enabled.text)
}
const SHOWN = {
  allowed_ops: ['fetch', 'subscribe'],
  columns: ['id', 'title'],
  conditions: [{ eq_column: 'is_public', eq_value: true }],
}
const begun = async (key: string, headers: Readonly<Record<string, string>> = {}): Promise<EventStream> => {
  const stream = await openStream(`${t.url}/public/${key}/subscribe`, { method: 'GET', headers })
  await stream.next('ready')
  return stream
}

/** It has ended before an event of this key. */
async function endsBefore(stream: EventStream, id: number): Promise<void> {
  const told = () => stream.seen.find(({ data }) => data.key?.id === id)
  await Promise.race([stream.ended, eventually(() => told() !== undefined)])
  assert.equal(told(), undefined)
  assert.equal(stream.seen.at(-1)?.name, 'reset')
}

test('a route that leads to another client ends its streams', async () => {
  const key = await route(SHOWN)
  const stream = await begun(key)
  assert.equal((await change(key, { client_name: 'other' })).status, 200)
  await sql(`insert into book values (7, 'Of the first', null, true, 'h7')`)
  await endsBefore(stream, 7)
})

test('an origin that a route allows no more is sent nothing more', async () => {
  const origin = 'https://shop.example.com'
  const key = await route({ ...SHOWN, allowed_origins: [origin] })
  const [page, program] = [await begun(key, { origin }), await begun(key)]
  assert.equal((await change(key, { allowed_origins: ['https://other.example.com'] })).status, 200)
  await sql(`insert into book values (8, 'Later', null, true, 'h8')`)
  assert.equal((await program.next('change')).data.key.id, 8)
  await endsBefore(page, 8)
  program.close()
})
