import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isStructural } from '#databases/drivers/catalogue-cache.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'

const database = await testDatabase()
const { url } = database
await withClient(url, (client) => client.query('create table notes (id int primary key, v jsonb, t text)'))
const t = await testService({ config: { clients: { app: { url }, twin: { url } } } })
after(async () => {
  await t.stop()
  await database.drop()
})
const on = async (client: string) =>
  actor(t.url, {
    apikey: (await t.key(['*'], { client_name: client })).apiKey,
    'x-service-client': client,
  })
const [app, twin] = [await on('app'), await on('twin')]
const insert = (row: object) =>
  app.send('PUT', '/gateway/insert', { body: { table_name: 'notes', insert_body: row } })

test('after SQL of one client has changed the types of columns, another client of the database writes values of these', async () => {
  assert.deepEqual((await insert({ id: 1, v: 'one', t: 'one' })).body.data, [{ id: 1, v: 'one', t: 'one' }])
  const query =
    'alter table notes alter v type text using v::text, alter t type jsonb using pg_catalog.to_jsonb(t)'
  assert.equal((await twin.post('/query/sql', { driver: 'postgresql', query })).status, 200)
  const row = { id: 2, v: 'two', t: 'two' }
  const inserted = await insert(row)
  assert.deepEqual(inserted.body.data, [row], inserted.text)
  const { rows } = await withClient(url, (client) =>
    client.query('select v, t::text as t from notes where id = 2'),
  )
  assert.deepEqual(rows, [{ v: 'two', t: '"two"' }])
})

test('SQL that only writes rows does not make the structure be read again', () => {
  for (const text of ['INSERT  INTO a values (1) on conflict do nothing', 'insert\ninto a select 1 on conflict (id) DO UPDATE set a = 1', 'merge into a using b on true when matched then delete', 'select undo from a']) // biome-ignore format: a list
    assert.equal(isStructural(text), false, text)
  for (const text of ['select 1 into a', 'with x as (insert into a default values returning 1) select * into b from x', 'DO $$ begin end $$', 'call p()', 'alter table a add b int', 'import foreign schema a from server b into c']) // biome-ignore format: a list
    assert.equal(isStructural(text), true, text)
})
