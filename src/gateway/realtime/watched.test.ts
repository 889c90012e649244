import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { openStream, pageOf } from '#test/event-stream.ts'
import { createSecuredTables } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, roles } = await createSecuredTables()
const CLAIMED = `(nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid`
let count = 0

/** A live table whose rows are those of the teams of a user, and a stream of Ada, who is in its first team. */
async function followed() {
  const [team, task] = [`team_${++count}`, `task_${count}`]
  const { status, text } = await admin.post('/gateway/query', {
    query: `create table ${team} (user_id uuid, team int, primary key (user_id, team));
      create table ${task} (id int primary key, team int); alter table ${task} enable row level security;
      create policy of_team on ${task} for select to ${roles.member} using (team in (select team from public.${team} where user_id = ${CLAIMED}));
      grant select on ${team}, ${task} to ${roles.member};
      insert into ${task} values (1, 1), (2, 2); insert into ${team} values ('${users.ada.id}', 1)`,
  })
  assert.equal(status, 200, text)
  const enabled = await admin.send('PUT', `/management/tables/${task}/realtime`, { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
  const stream = await openStream(`${t.url}/realtime`, {
    headers: { ...adas.headers },
    body: { tables: [{ table_name: task }] },
  })
  await stream.next('ready')
  const beginnings = () => stream.seen.filter(({ name }) => name === 'ready').length
  return {
    team,
    stream,
    beginnings,
    ids: () => [...pageOf(stream, task).values()].map(({ id }) => id).join(),
  }
}

test('a membership is told also after the trigger of its table was dropped', async () => {
  const { team, stream, beginnings, ids } = await followed()
  assert.equal(ids(), '1')
  await sql(`drop trigger service_changes_delete on ${team}; delete from ${team}`)
  await eventually(() => ids() === '' && beginnings() > 1)
  await sql(`insert into ${team} values ('${users.ada.id}', 2)`)
  await eventually(() => ids() === '2')
  await sql(`delete from ${team}`)
  await eventually(() => ids() === '')
  stream.close()
})

test('what a changed policy of such a table reads is told from then on', async () => {
  const { team, stream, beginnings, ids } = await followed()
  await sql(`create table closed_${team} (team int); grant select on closed_${team} to ${roles.member};
    alter table ${team} enable row level security;
    create policy reading on ${team} for select to ${roles.member} using (team not in (select team from public.closed_${team}))`)
  await eventually(() => ids() === '1' && beginnings() > 1)
  await sql(`insert into closed_${team} values (1)`)
  await eventually(() => ids() === '')
  stream.close()
})
