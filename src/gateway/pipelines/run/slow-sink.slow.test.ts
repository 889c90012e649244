import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
const t = await testService({ config: { clients: { app: { url: database.url, statement_timeout: 2_000 } } } })
after(async () => {
  await t.stop()
  await database.drop()
})

test('rows reach a sink whose trigger makes each of them slow, although all together would take too long', async () => {
  await sql(`create table target (id int);
    create view source as select n as id from generate_series(1, 1200) n;
    create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.003); return new; end $$;
    create trigger slow before insert on target for each row execute function slow()`)
  const key = await t.key(['*'], { client_name: 'app' })
  const answer = await key.post(
    '/pipelines',
    { source: { table_name: 'source' }, sink: { table_name: 'target' } },
    { headers: { 'x-service-client': 'app' } },
  )
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.body.rows_inserted, 1_200)
  assert.equal((await sql('select distinct id from target')).length, 1_200)
})
