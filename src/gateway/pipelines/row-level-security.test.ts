import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import type { Actor } from '#test/harness.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'
import { createTenants } from '#test/tenants.ts'

const { t, database, sql, changeControlDatabase, roles, users, acme, beta, anon, signedIn } =
  await createTenants()
const { bea, dora } = users
await sql(`create table draft (id int primary key, organization_id uuid, title text);
  insert into draft values (101, '${acme}', 'one'), (102, '${beta}', 'foreign'), (103, '${acme}', 'two');
  grant select on draft to ${roles.member}`)
await sql(`create table slot (id int, organization text default (claims()->>'organization_id'));
  alter table slot enable row level security;
  create policy own on slot using (organization = claims()->>'organization_id');
  create function waits() returns trigger language plpgsql as $$ begin
    if new.id = 1 then perform pg_advisory_xact_lock_shared(7); end if; return new; end $$;
  create trigger waits before insert on slot for each row execute function waits();
  grant select, insert on slot to ${roles.member}`)
await withClient(t.clientUrl, (client) =>
  client.query('create view numbered as select id from generate_series(1, 1000) id'),
)

const run = (who: Actor, body: object, headers = {}) => who.post('/pipelines', body, { headers })
const ofDocs = {
  source: { table_name: 'doc', columns: ['id', 'title'] },
  sink: { table_name: 'note' },
  dry_run: true,
}

test('the source returns what the policies of its client show to the session', async () => {
  const idsFor = async (who: Actor) => {
    const { body } = await run(who, ofDocs)
    return body.data.map(({ id }: { id: number }) => id).sort()
  }
  assert.deepEqual(await idsFor(anon), [3])
  assert.deepEqual(await idsFor(signedIn(bea)), [1, 3])
  assert.deepEqual(await idsFor(signedIn(dora)), [3, 4])
})

test('rows that a policy of the sink refuses are reported, and the others are stored', async () => {
  const body = { source: { table_name: 'draft' }, sink: { table_name: 'doc' } }
  const answer = await run(signedIn(bea), body)
  assert.deepEqual([answer.status, answer.body.rows_inserted], [200, 2], answer.text)
  assert.deepEqual(
    answer.body.errors.map(({ index, code }: { index: number; code: string }) => [index, code]),
    [[1, 'permission_denied']],
  )
  assert.deepEqual(await sql('select id from doc where id > 100 order by id'), [{ id: 101 }, { id: 103 }])
  // Without the privilege to insert, no row can be stored, so the run fails.
  const refused = await run(anon, { ...body, source: { table_name: 'doc', columns: ['title'] } })
  assert.deepEqual([refused.status, refused.body.code], [403, 'permission_denied'])
})

test('the session counts on the other client too, and a client that needs a key has none without it', async () => {
  const body = { ...ofDocs, source: { ...ofDocs.source, client: 'wide' } }
  assert.equal((await run(signedIn(bea), body)).status, 401)
  const key = await t.key(['*'], { client_name: 'app' })
  const { body: run1 } = await run(signedIn(bea), body, { apikey: key.apiKey })
  assert.deepEqual(run1.data.map(({ id }: { id: number }) => id).sort(), [1, 101, 103, 3])
  assert.equal((await run(anon, body, { apikey: key.apiKey })).body.rows_fetched, 1)
  const bypass = await t.key(['*', 'gateway.bypass_row_level_security'], { client_name: 'app' })
  assert.equal((await run(anon, body, { apikey: bypass.apiKey })).body.rows_fetched, 6)
})

test('an impersonated session runs no pipeline, nor simulates one', async () => {
  const root = await t.signUp('Root')
  await changeControlDatabase(`update service."user" set role = 'admin' where id = $1`, [root.id])
  const who = await impersonated(t, root, bea, { parentId: await sessionIdOf(root) })
  const headers = { 'x-service-client': 'app' }
  const dry = await run(who, ofDocs, headers)
  assert.deepEqual([dry.status, dry.body.code], [403, 'not_while_impersonating'])
  const wet = await run(who, { source: { table_name: 'draft' }, sink: { table_name: 'doc' } }, headers)
  assert.deepEqual([wet.status, wet.body.code], [403, 'not_while_impersonating'])
})

test('a run whose session changes its organization writes no further row, also when only the sink has policies', async () => {
  const { apiKey } = await t.key(['*'], { client_name: null })
  const who = signedIn(bea, { apikey: apiKey, 'x-service-client': 'default' })
  const body = { source: { table_name: 'numbered' }, sink: { client: 'app', table_name: 'slot' } }
  const running = await withClient(database.url, async (client) => {
    await client.query('select pg_advisory_lock(7)')
    const answer = { ended: run(who, body) }
    const waiting = `select from ${OWN_LOCKS} where locktype = 'advisory' and not granted`
    while ((await client.query(waiting)).rowCount === 0) await sleep(10)
    const leave = 'update service.session set active_organization_id = null where user_id = $1'
    await changeControlDatabase(leave, [bea.id])
    return answer
  })
  const { status, body: refused } = await running.ended
  assert.deepEqual([status, refused.code], [409, 'caller_changed'])
  const stored = await sql('select organization, count(*)::int as rows from slot group by 1')
  assert.deepEqual(stored, [{ organization: acme, rows: refused.data.details.rows_inserted }])
})
