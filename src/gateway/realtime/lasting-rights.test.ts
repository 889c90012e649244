import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import type { Actor } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, beas, createTable, secured, insert, roles } = await createSecuredTables()

async function live(table: string): Promise<void> {
  const enabled = await admin.send('PUT', `/management/tables/${table}/realtime`, { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
}
async function begun(who: Actor, table_name: string): Promise<EventStream> {
  const stream = await openStream(`${t.url}/realtime`, {
    headers: { ...who.headers },
    body: { tables: [{ table_name }] },
  })
  await stream.next('ready')
  return stream
}

test('a session that bypasses policies is told nothing more once it would have to prove itself again', async () => {
  await createTable('own', [USER, TEXT])
  await secured('own', [{ preset: 'owner', column: 'user_id' }])
  await live('own')
  const person = await operatorOf(t, 'admin')
  const boss = byBearer(t, person)
  const who = { ...boss, headers: { ...boss.headers, 'x-service-client': 'app' } }
  const stream = await begun(who, 'own')
  await insert(beas, 'own', { text: 'first' })
  assert.equal((await stream.next('change')).data.row.text, 'first')
  t.advance(11 * 60_000)
  const refused = await t.anon.post('/gateway/fetch', { table_name: 'own' }, { headers: { ...who.headers } })
  assert.equal(refused.status, 403, refused.text)
  await insert(beas, 'own', { text: 'later' })
  await stream.ended
  assert.ok(!stream.seen.some(({ data }) => data.row?.text === 'later'))
})

test('policies that are made past the gateway hold for a stream at once', async () => {
  await admin.post('/gateway/query', {
    query: `create table open_one (id int primary key, hidden_from uuid, text text);
    grant select on open_one to ${roles.member}`,
  })
  await live('open_one')
  const ada = await begun(adas, 'open_one')
  const bea = await begun(beas, 'open_one')
  await sql(`alter table open_one enable row level security;
    create policy a on open_one for select to ${roles.member} using (hidden_from is distinct from (nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid)`)
  await ada.next('reset')
  await ada.next('ready')
  await bea.next('reset')
  await bea.next('ready')
  await sql(`insert into open_one values (1, '${users.ada.id}', 'hidden'), (2, null, 'shown')`)
  await eventually(() => pageOf(bea, 'open_one').size === 2)
  await eventually(() => pageOf(ada, 'open_one').size > 0)
  assert.equal(pageOf(ada, 'open_one').size, 1)
  ada.close()
  bea.close()
})

const CLAIM = `(nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid`
const ddl = async (query: string) => {
  const { status, text } = await admin.post('/gateway/query', { query })
  assert.equal(status, 200, text)
}

test('a changed policy of a table that policies read begins the stream again, under what it reads now', async () => {
  await ddl(`create table block (id int primary key, who uuid); alter table block enable row level security;
    create policy seen on block for select to ${roles.member} using (true);
    create table post (id int primary key); alter table post enable row level security;
    create policy unblocked on post for select to ${roles.member} using (not exists (select from public.block));
    grant select on block, post to ${roles.member}`)
  await live('post')
  const [ada, bea] = [await begun(adas, 'post'), await begun(beas, 'post')]
  await sql(
    `alter policy seen on block using (who = ${CLAIM}); insert into block values (1, '${users.ada.id}')`,
  )
  for (const stream of [ada, bea]) {
    assert.equal((await stream.next('reset')).data.reason, 'policy_changed')
    await stream.next('ready')
  }
  await sql('insert into post values (1)')
  assert.deepEqual((await bea.next('change')).data.key, { id: 1 })
  await sql('delete from block; insert into post values (2)')
  await eventually(() => pageOf(ada, 'post').size === 2)
  const told = ada.seen.filter(({ name }) => name === 'change').map(({ data }) => data.row.id)
  assert.deepEqual(told.toSorted(), [1, 2])
  ada.close()
  bea.close()
})

test('a table that policies read is watched again after its triggers were disabled', async () => {
  await ddl(`create table guest (id int primary key, who uuid); create table room (id int primary key);
    alter table room enable row level security;
    create policy invited on room for select to ${roles.member} using (exists (select from public.guest where who = ${CLAIM}));
    grant select on guest, room to ${roles.member}; insert into room values (1)`)
  await live('room')
  const ada = await begun(adas, 'room')
  await sql('alter table guest disable trigger all')
  await ada.next('reset')
  await ada.next('ready')
  await sql(`insert into guest values (1, '${users.ada.id}')`)
  await eventually(() => pageOf(ada, 'room').size === 1)
  await sql('delete from guest')
  await eventually(() => pageOf(ada, 'room').size === 0)
  ada.close()
})
