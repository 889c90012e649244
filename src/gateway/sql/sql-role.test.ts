import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { type Actor, actor, testService } from '#test/harness.ts'

// Roles are global to the server, which other test files use at the same time, so their names are unique.
const suffix = randomBytes(4).toString('hex')
const [role, member, signaller] = ['sql', 'sql_member', 'sql_signals'].map((name) => `${name}_${suffix}`)
const password = 'p@ss:/?#%word'
const database = await testDatabase()
const own = new URL(database.url).username
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
const onClient = async (text: string) => (await withClient(database.url, (client) => client.query(text))).rows

const clientAs = (name = '', secret = password) => ({
  url: database.url,
  sql_connections: 2,
  sql_role: { name, password: secret },
})
await onServer(
  [role, member, signaller].map((name) => `create role ${name} login password '${password}'`).join(';'),
)
await onServer(`grant "${own}" to ${member}; grant pg_signal_backend to ${signaller}`)
const t = await testService({
  config: {
    clients: {
      app: { ...clientAs(role), statement_timeout: 3_000 },
      same: clientAs(own, decodeURIComponent(new URL(database.url).password)),
      member: clientAs(member),
      signaller: clientAs(signaller),
    },
  },
})
after(async () => {
  await t.stop()
  await database.drop()
  await onServer(`drop role ${role}; drop role ${member}; drop role ${signaller}`)
})

const keyFor = async (client: string, rights: readonly string[]) => {
  const { apiKey } = await t.key(rights, { client_name: client })
  return actor(t.url, { apikey: apiKey, 'x-service-client': client })
}
const full = await keyFor('app', ['gateway.query', 'gateway.*'])
const reader = await keyFor('app', ['gateway.query.read'])
const sql = (who: Actor, query: string) => who.post('/gateway/query', { query })

before(() =>
  onClient(`
    create table item (id int primary key, word text);
    insert into item values (1, 'one');
    create table awaited (id int primary key);
    grant select on item to ${role}`),
)

test("callers' SQL runs as the SQL role, with only its privileges", async () => {
  for (const who of [full, reader]) {
    const { body } = await sql(
      who,
      'select session_user::text as login, current_user::text as role, word from item',
    )
    assert.deepEqual(body.data, [{ login: role, role, word: 'one' }])
  }
  const written = await sql(full, 'delete from item')
  assert.deepEqual([written.status, written.body.code], [403, 'permission_denied'])
  const fetched = await full.post('/gateway/fetch', { table_name: 'item' })
  assert.deepEqual(fetched.body.data, [{ id: 1, word: 'one' }])
  const insert = { table_name: 'awaited', insert_body: { id: 9 } }
  assert.equal((await full.send('PUT', '/gateway/insert', { body: insert })).status, 200)
})

test("callers' SQL cannot switch back to the client's own role", async () => {
  for (const query of [
    `reset role; select current_user::text as role`,
    `reset session authorization; reset all; select current_user::text as role`,
    `set session authorization default; select current_user::text as role`,
    `discard all; select current_user::text as role`,
    `do $$ begin reset role; end $$; select current_user::text as role`,
  ])
    assert.deepEqual((await sql(full, query)).body.data, [{ role }], query)
  for (const query of [
    `set role "${own}"`,
    `set session authorization "${own}"`,
    `select set_config('role', '${own}', false)`,
    `select set_config('session_authorization', '${own}', false)`,
    `do $$ begin execute 'set role "${own}"'; end $$`,
    `grant "${own}" to ${role}`,
  ]) {
    const answer = await sql(full, query)
    assert.deepEqual(
      [answer.status, answer.body.code],
      [403, 'permission_denied'],
      `${query}: ${answer.text}`,
    )
  }
})

test("callers' SQL cannot cancel or terminate statements of the client's own role", async () => {
  await withClient(database.url, async (locker) => {
    await locker.query('begin; lock table awaited in access exclusive mode')
    const insert = full.send('PUT', '/gateway/insert', {
      body: { table_name: 'awaited', insert_body: { id: 1 } },
    })
    const pid = await until(waiting)
    for (const who of [full, reader])
      for (const name of ['pg_terminate_backend', 'pg_cancel_backend']) {
        const answer = await sql(who, `select ${name}(${pid})`)
        assert.deepEqual([answer.status, answer.body.code], [403, 'permission_denied'], answer.text)
      }
    assert.equal(await waiting(), pid)
    await locker.query('rollback')
    assert.equal((await insert).status, 200)
  })
})

test('a statement that catches its cancellation is terminated by the same role', async () => {
  const stubborn = `do $$ begin loop begin perform pg_sleep(100); exception when query_canceled then null; end; end loop; end $$`
  const answer = await sql(full, `set statement_timeout to 0; ${stubborn}`)
  assert.deepEqual([answer.status, answer.body.code], [504, 'statement_timeout'], answer.text)
  await until(async () => {
    const [{ n }] = await onClient(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and usename = '${role}' and state = 'active'`,
    )
    return n === 0 || undefined
  })
})

test("an SQL role that is, may become or may signal the client's own role is rejected; data operations still work", async () => {
  for (const [client, reason] of [
    ['same', own],
    ['member', own],
    ['signaller', 'pg_signal_backend'],
  ] as const) {
    const key = await keyFor(client, ['gateway.query', 'gateway.read'])
    const answer = await sql(key, 'select 1')
    assert.deepEqual([answer.status, answer.body.code], [503, 'unsafe_client'], answer.text)
    assert.ok(answer.body.data.details.reasons.includes(`is or may become ${reason}`), answer.text)
    assert.equal((await key.post('/gateway/fetch', { table_name: 'item' })).status, 200)
  }
})

async function waiting(): Promise<number | undefined> {
  const rows = await onClient(
    `select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
  )
  return rows[0]?.pid
}

async function until<T>(check: () => Promise<T | undefined>): Promise<T> {
  for (let round = 0; round < 200; round++) {
    const found = await check()
    if (found !== undefined) return found
    await sleep(50)
  }
  throw new Error('the condition did not hold in time')
}
