import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { findUnprotectedTables } from '#databases/drivers/postgres/roles/unprotected-tables.ts'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'

/** Roles are global to the server, which other test files use at the same time, so their names are unique. */
const suffix = randomBytes(4).toString('hex')
const named = (name: string) => `${name}_${suffix}`
const database = await testDatabase()
const owner = new URL(database.url).username
const sql = (text: string) => withClient(database.url, (client) => client.query(text))
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))

const ROLES = ['anon', 'member', 'stranger', 'bypassing', 'inheriting', 'owning', 'leaving'].map(named)
const client = (signedIn: string) => ({
  url: database.url,
  enforce_api_keys: false,
  row_level_security: {
    enabled: true,
    anonymous_role: named('anon'),
    signed_in_role: signedIn === 'own' ? owner : named(signedIn),
  },
})
const t = await testService({
  config: {
    clients: {
      good: client('member'),
      missing: client('missing'),
      stranger: client('stranger'),
      bypassing: client('bypassing'),
      inheriting: client('inheriting'),
      owning: client('owning'),
      own: client('own'),
      leaving: client('leaving'),
    },
  },
})

before(async () => {
  await onServer(`${ROLES.map((role) => `create role ${role} nologin`).join(';')};
    alter role ${named('bypassing')} bypassrls;
    grant ${named('bypassing')} to ${named('inheriting')};
    grant ${ROLES.filter((role) => role !== named('stranger')).join(', ')} to "${owner}"`)
  await sql(`
    create table kept (id int primary key);
    create table owned (id int primary key);
    grant create on schema public to ${named('owning')};
    alter table owned owner to ${named('owning')};
    grant select on kept to ${ROLES.join(', ')}`)
})
after(async () => {
  await t.stop()
  await database.drop()
  await onServer(`drop role if exists ${ROLES.join(', ')}`)
})

test('doctor reports tables without policies, and claims that policies must not trust', async () => {
  await sql(`
    create table open_to_all (id int); create table closed (id int); create table guarded (id int); create table unreached (id int);
    alter table closed enable row level security; alter table guarded enable row level security;
    create policy positive on guarded using (id > 0);
    create view leaky as select * from guarded; create view careful with (security_invoker = true) as select * from guarded;
    create materialized view copied as select * from guarded;
    create function said() returns text language sql stable as 'select current_setting(''request.claims'')';
    create function fixed(key text) returns text language sql immutable as 'select current_setting(''request.claims'')::json->>key';
    create function indirect() returns text language sql immutable as 'select said()';
    create function half(n int) returns int language sql immutable as 'select n / 2';
    create policy more on guarded using (said() <> '' and indirect() <> '' and half(id) > 0);
    grant select on open_to_all, closed, guarded, leaky, careful, copied to ${named('member')}`)
  const found = await findUnprotectedTables(database.url, {
    anonymousRole: named('anon'),
    signedInRole: named('member'),
  })
  const because = Object.fromEntries(found.map(({ name, why }) => [name, why]))
  assert.deepEqual(Object.keys(because).sort(), [
    'closed',
    'copied',
    'fixed(text)',
    'indirect()',
    'kept',
    'leaky',
    'open_to_all',
  ])
  assert.match(because.closed ?? '', /no policy/)
  assert.match(because.open_to_all ?? '', /row-level security off/)
  assert.match(because.leaky ?? '', /security_invoker/)
  assert.match(because['indirect()'] ?? '', /IMMUTABLE.*stable/)
})

const read = (name: string, token?: string) =>
  actor(t.url, {
    'x-service-client': name,
    ...(token === undefined ? {} : { 'x-service-auth-session-token': token }),
  }).post('/gateway/fetch', { table_name: 'kept' })

test('missing roles, and roles that the client may not assume, get 503 with a hint', async () => {
  const missing = await read('missing')
  assert.deepEqual([missing.status, missing.body.code], [503, 'roles_unavailable'])
  assert.match(missing.body.error, new RegExp(`create role "${named('missing')}" nologin`))
  const stranger = await read('stranger')
  assert.deepEqual([stranger.status, stranger.body.code], [503, 'roles_unavailable'])
  assert.match(stranger.body.error, new RegExp(`grant "${named('stranger')}"`))
})

test('roles that bypass row-level security are rejected, directly or through memberships', async () => {
  const reasons = {
    bypassing: `${named('bypassing')} is superuser or BYPASSRLS`,
    inheriting: `${named('inheriting')} is a member of ${named('bypassing')}`,
    owning: `${named('owning')} owns owned`,
  }
  for (const [name, reason] of Object.entries(reasons)) {
    const answer = await read(name)
    assert.deepEqual([answer.status, answer.body.code], [503, 'unsafe_client'], answer.text)
    assert.deepEqual(answer.body.data.details.reasons, [reason])
  }
  const own = await read('own')
  assert.deepEqual([own.status, own.body.code], [503, 'unsafe_client'], own.text)
})

test('a role that is revoked at run time blocks only its own callers', async () => {
  const ada = await t.signUp('Ada')
  assert.equal((await read('leaving', ada.token)).status, 200)
  // Prepared by now.
  for (let round = 0; round < 3; round++) assert.equal((await read('leaving', ada.token)).status, 200)
  await onServer(`revoke ${named('leaving')} from "${owner}"`)
  const closed = await read('leaving', ada.token)
  assert.deepEqual([closed.status, closed.body.code], [503, 'roles_unavailable'])
  assert.equal((await read('leaving')).status, 200)
  const insert = await actor(t.url, {
    'x-service-client': 'leaving',
    'x-service-auth-session-token': ada.token,
  }).post('/gateway/transaction', {
    operations: [{ id: 'a', kind: 'insert', payload: { table_name: 'kept', insert_body: { id: 1 } } }],
  })
  assert.deepEqual([insert.status, insert.body.code], [503, 'roles_unavailable'])
  assert.equal((await sql('select from kept')).rowCount, 0)
  await onServer(`grant ${named('leaving')} to "${owner}"`)
  assert.equal((await read('leaving', ada.token)).status, 200)
  await sql(`revoke select on kept from ${named('leaving')}`)
  await onServer(`drop role ${named('leaving')}`)
  assert.equal((await read('leaving', ada.token)).body.code, 'roles_unavailable')
  assert.equal((await read('good', ada.token)).status, 200)
})
