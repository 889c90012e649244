import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { webhookRequests } from '#test/webhooks.ts'

const t = await testService()
const { kernel } = t.service
const key = await t.key(['*'])
const { made } = webhookRequests(t)

type Payload = { type: string; data: Record<string, unknown> }

before(() =>
  withClient(t.clientUrl, (client) =>
    client.query(`
      create table track (id bigint primary key, title text, rating numeric);
      insert into track values (21000, 'a', 10)`),
  ),
)

const payloads = async (): Promise<Payload[]> =>
  (await kernel.db.selectFrom('webhookEvent').select('body').execute()).map(({ body }) => JSON.parse(body))
const insert = (body: object) =>
  key.send('PUT', '/gateway/insert', { body: { table_name: 'track', ...body } })

test('a filter is not evaded by an answer that lacks what it needs: the event comes without rows', async () => {
  await made({
    route_key: 'gateway.*',
    filter: [
      { operator: 'gt', column: 'rating', value: 3 },
      { column: 'title', value: 'a' },
    ],
  })
  const told = async (work: () => Promise<unknown>) => {
    const before = (await payloads()).length
    await work()
    return (await payloads()).length - before
  }
  const row = { rating: 10, title: 'a' }
  const writer = await t.key(['track.write'])
  const send = (by: typeof key, body: object) =>
    by.send('PUT', '/gateway/insert', { body: { table_name: 'track', ...body } })
  const at = { table_name: 'track', conditions: [{ column: 'id', value: 21_000 }] }
  for (const [what, work] of Object.entries({
    'no column': () => insert({ insert_body: { id: 21_010, ...row }, columns: ['id'] }),
    'a cast': () => insert({ insert_body: { id: 21_001, ...row }, columns: ['rating::integer', 'title'] }),
    'another column under its name': () =>
      insert({ insert_body: { id: 21_002, ...row }, columns: ['rating:id', 'title'] }),
    'no rows': () => insert({ insert_body: { id: 21_003, ...row }, head: true }),
    'no right to read': () => send(writer, { insert_body: { id: 21_004, ...row } }),
    SQL: () => key.post('/gateway/query', { query: 'update track set rating = 10 where id = 21000' }),
    'a read': () => key.post('/gateway/fetch', { ...at, columns: ['id'] }),
  }))
    assert.equal(await told(work), 1, what)
  for (const { data } of await payloads()) {
    assert.equal(data.rows, undefined)
    assert.equal(data.rows_omitted, true)
  }
  for (const [what, work] of Object.entries({
    'a column that decides': () =>
      insert({ insert_body: { id: 21_005, rating: 10, title: 'b' }, columns: ['title'] }),
    'no row': () =>
      key.post('/gateway/update', { ...at, set: row, conditions: [{ column: 'id', value: -5 }] }),
    'no row and no rows': () =>
      key.post('/gateway/update', { ...at, set: row, head: true, conditions: [{ column: 'id', value: -5 }] }),
  }))
    assert.equal(await told(work), 0, what)
})
