import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { hasPooler } from '#test/database.ts'
import { type Actor, actor } from '#test/harness.ts'
import { createTenants, docsOf, whoIs } from '#test/tenants.ts'

const { t, sql, roles, users, acme, beta, signedIn } = await createTenants()
const { ada, cem } = users
const admin = actor(t.url, { 'x-service-client': 'app', ...t.admin.headers })

/** Functions that change session state, and the objects that call them. */
before(() =>
  sql(`
    create table trap (role text, claims text);
    create function spring() returns trigger language plpgsql as $$ begin
      perform set_config('role', new.role, false), set_config('request.claims', new.claims, false); return null; end $$;
    create trigger springs after insert on trap for each row execute function spring();
    create function take(is_local boolean) returns text language sql volatile as
      $$ select set_config('role', 'none', is_local) || set_config('request.claims', '{"organization_id":"${beta}"}', is_local) $$;
    create view taken_for_good with (security_invoker = true) as select take(false) as took;
    create view taken_for_now with (security_invoker = true) as select take(true) as took;
    create table late (id int); create table late_log (as_role text, claims jsonb);
    create function log_late() returns trigger language plpgsql security definer as
      $$ begin insert into late_log values (current_setting('role'), claims()); return null; end $$;
    create constraint trigger logs after insert on late deferrable initially deferred for each row execute function log_late();
    create table part (id int primary key, organization_id text, size int);
    alter table part enable row level security;
    create policy own on part using (organization_id = claims()->>'organization_id');
    insert into part values (1, '${acme}', 1), (2, '${beta}', 2);
    create function forget() returns text language plpgsql as 'begin deallocate all; return null; end';
    create view forgetting with (security_invoker = true) as select forget() as f;
    create table kept_name (name text);
    create function squat() returns text language plpgsql as $$ declare kept text; begin
      for kept in select name from kept_name loop execute format('prepare %I as select 1', kept); end loop; return null; end $$;
    create view squatting with (security_invoker = true) as select squat() as f;
    create view prepared with (security_invoker = true) as select name from pg_prepared_statements;
    create schema closed; create table closed.thing (id int);
    grant create on schema public to ${roles.member};
    grant select, insert on trap, late to ${roles.member};
    grant select on taken_for_good, taken_for_now, part, forgetting, squatting, prepared, kept_name to ${roles.member}`),
)

const fetchOf = (id: string, table_name: string, columns = '*') => ({
  id,
  kind: 'fetch',
  payload: { table_name, columns },
})
const idsOf = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id).sort()

test('session state left by a trigger does not affect other callers or the gateway itself', async () => {
  const manager = await t.key(['management.*'], { client_name: 'app' })
  const leave = async () => {
    const left = await signedIn(ada).send('PUT', '/gateway/insert', {
      body: { table_name: 'trap', insert_body: { role: roles.member, claims: '{"user_id":"nobody"}' } },
    })
    assert.equal(left.status, 200, left.text)
  }
  await leave()
  assert.deepEqual(await whoIs(admin), { role: roles.owner, claims: {} })
  assert.deepEqual(await docsOf(signedIn(cem)), [2, 3])
  await leave()
  const keyed = await signedIn(cem).post(
    '/gateway/transaction',
    { operations: [fetchOf('a', 'doc', 'id')] },
    { headers: { 'idempotency-key': 'behind a trap' } },
  )
  assert.equal(keyed.status, 200, keyed.text)
  await leave()
  const made = await manager.post(
    '/management/tables',
    { table_name: 'made', columns: [{ name: 'id', data_type: 'bigint' }] },
    { headers: { 'x-service-client': 'app' } },
  )
  assert.equal(made.status, 200, made.text)
  const owners = await sql(`select tableowner from pg_tables where tablename = 'made'`)
  assert.deepEqual(owners, [{ tableowner: roles.owner }])
  // The catalogue was read again afterwards, as the client's own role.
  const thing = await admin.post('/gateway/fetch', { table_name: 'closed.thing' })
  assert.equal(thing.status, 200, thing.text)
})

test('each operation of a transaction runs as its caller, even after a function has changed the role', async () => {
  for (const view of ['taken_for_good', 'taken_for_now']) {
    for (const headers of [{}, { 'idempotency-key': view }] as Record<string, string>[]) {
      const operations = [
        fetchOf('take', view),
        fetchOf('read', 'doc', 'id'),
        fetchOf('who', 'who'),
        { id: 'write', kind: 'insert', payload: { table_name: 'late', insert_body: { id: 1 } } },
        fetchOf('take again', view),
      ]
      const answer = await signedIn(ada).post('/gateway/transaction', { operations }, { headers })
      assert.equal(answer.status, 200, answer.text)
      const [, read, who] = answer.body.results
      assert.deepEqual(idsOf(read.data), [1, 3])
      assert.deepEqual([who.data[0].role, JSON.parse(who.data[0].claims).user_id], [roles.member, ada.id])
      // Deferred constraints run at COMMIT, under the caller's role.
      const [late] = await sql('delete from late_log returning *')
      assert.deepEqual([late?.as_role, late?.claims.user_id], [roles.member, ada.id])
    }
  }
})

// With an old PgBouncer, statements are not prepared.
const skip = hasPooler() && 'nothing is prepared through this pooler'
test('a statement that is prepared again keeps its caller', { skip }, async () => {
  const read = async (who: Actor) => {
    const answer = await who.post('/gateway/fetch', { table_name: 'part', columns: 'id,size' })
    assert.equal(answer.status, 200, answer.text)
    return idsOf(answer.body.data)
  }
  const prepare = async () => {
    for (let round = 0; round < 3; round++) await read(signedIn(cem))
  }
  const anew = async () => {
    const { body } = await signedIn(cem).post('/gateway/fetch', { table_name: 'prepared' })
    const names = body.data.map(({ name }: { name: string }) => `('${name}')`)
    assert.ok(names.length > 1)
    await sql(`insert into kept_name values ${names.join()}; select pg_terminate_backend(pid, 10000) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and application_name like 'gatehouse%'`)
    // A different text each time, so that it is not prepared itself. The first request may get the lost connection.
    const squat = (limit: number) => signedIn(cem).post('/gateway/fetch', { table_name: 'squatting', limit })
    assert.ok((await squat(1)).status === 200 || (await squat(2)).status === 200)
  }
  // A changed column type gives 0A000. Unknown or duplicate prepared statements give 26000 and 42P05.
  const changes = [
    () => sql('alter table part alter size type bigint'),
    () => signedIn(cem).post('/gateway/fetch', { table_name: 'forgetting' }),
    anew,
  ]
  for (const change of changes) {
    await prepare()
    await change()
    assert.deepEqual([await read(signedIn(ada)), await read(signedIn(cem))], [[1], [2]])
  }
})
