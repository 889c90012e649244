import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'
import { startPostgrestEndpoint } from '#test/postgrest/endpoint.ts'

const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
await sql(`
  create table stored (id int primary key, state text);
  create function refuse() returns trigger language plpgsql as $$ begin
    if new.state = 'end' then execute 'vacuum'; end if;
    if new.state is not null then raise exception 'no' using errcode = new.state; end if; return new;
  end $$;
  create trigger refuse before insert on stored for each row execute function refuse()`)
const endpoint = await startPostgrestEndpoint(database.url)
const t = await testService({
  config: {
    clients: {
      direct: { url: database.url, max_connections: 3 },
      supabase: { driver: 'supabase' as const, url: endpoint.url },
    },
  },
})
after(async () => {
  await t.stop()
  endpoint.close()
  await database.drop()
})
beforeEach(() => sql('truncate stored'))

const { apiKey } = await t.key(['*'], { client_name: null })
const send = (client: string, states: readonly string[]) =>
  actor(t.url, { apikey: apiKey, 'x-service-client': client }).send(
    'POST',
    '/gateway/import?table_name=stored',
    {
      raw: `id,state\n${states.map((state, index) => `${index},${state}\n`).join('')}`,
      headers: { 'content-type': 'text/csv' },
    },
  )

for (const client of ['direct', 'supabase'])
  test(`rows that a trigger refuses with an SQLSTATE of its own do not end the import: ${client}`, async () => {
    const { status, body, text } = await send(client, ['', 'PT409', '', 'ZZ001', ''])
    assert.equal(status, 200, text)
    assert.deepEqual([body.data.rows_inserted, body.data.rows_refused], [3, 2])
    assert.equal((await sql('select from stored')).length, 3)
  })

test('rows that a trigger refuses are not in doubt when another failure ends the import', async () => {
  const { status, body } = await send('direct', ['', '57P01', '', 'end'])
  assert.deepEqual([status, body.code], [502, 'database_error'])
  const { rows_inserted, rows_refused, rows_in_doubt } = body.data.details
  assert.deepEqual([rows_inserted, rows_refused, rows_in_doubt], [1, 1, undefined])
})
