import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { openStream, pageOf } from '#test/event-stream.ts'
import type { Actor } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, beas, createTable, secured, fetched, roles } = await createSecuredTables()
const CLAIMED = `(nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid`

async function ddl(query: string): Promise<void> {
  const { status, text } = await admin.post('/gateway/query', { query })
  assert.equal(status, 200, text)
}

async function live(table: string): Promise<void> {
  const enabled = await admin.send('PUT', `/management/tables/${table}/realtime`, { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
}

async function follow(who: Actor, table_name: string) {
  const stream = await openStream(`${t.url}/realtime`, {
    headers: { ...who.headers },
    body: { tables: [{ table_name }] },
  })
  await stream.next('ready')
  return { stream, texts: () => [...pageOf(stream, table_name).values()].map(({ text }) => text) }
}

test('each owner is told of their row, also where a child table has one of another with its key', async () => {
  await createTable('note', [USER, TEXT])
  await secured('note', [{ preset: 'owner', column: 'user_id' }])
  await ddl('create table old_note () inherits (note)')
  await live('note')
  await sql(`insert into old_note (id, user_id, text) values (1, '${users.ada.id}', 'of Ada')`)
  const [ada, bea] = [await follow(adas, 'note'), await follow(beas, 'note')]
  // Streams whose rows are chosen by their owners from now on.
  await sql(
    `insert into note (id, user_id, text) values (8, '${users.ada.id}', 'first'), (9, '${users.bea.id}', 'first')`,
  )
  await ada.stream.next('change')
  await bea.stream.next('change')
  await sql(`insert into note (id, user_id, text) values (1, '${users.bea.id}', 'of Bea')`)
  await eventually(() => bea.texts().includes('of Bea'))
  assert.deepEqual(ada.texts(), ['of Ada', 'first'])
  assert.equal((await fetched(beas, 'note')).length, 2)
  for (const { stream } of [ada, bea]) stream.close()
})

test('rows whose keys are JSON are told when a membership shows them', async () => {
  await ddl(`create table team (user_id uuid, team int, primary key (user_id, team));
    create table task (id jsonb primary key, team int, text text); alter table task enable row level security;
    create policy of_team on task for select to ${roles.member} using (team in (select team from public.team where user_id = ${CLAIMED}));
    grant select on team, task to ${roles.member};
    insert into task values ('"1"', 1, 'text of digits'), ('"a"', 1, 'text'), ('{"a": [1]}', 1, 'object'), ('2', 1, 'number')`)
  await live('task')
  const { stream, texts } = await follow(adas, 'task')
  await sql(`insert into team values ('${users.ada.id}', 1)`)
  await eventually(() => texts().length === 4)
  await sql('delete from team')
  await eventually(() => stream.seen.filter(({ name }) => name === 'leave').length === 4)
  assert.ok(!stream.seen.some(({ name }) => name === 'reset'))
  stream.close()
})
