import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import type { Actor } from '#test/harness.ts'
import { createSecuredTables } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, beas, roles } = await createSecuredTables()
/** As Supabase has it, but for the setting. */
const uid = (more = '') => `create or replace function auth.uid() returns uuid language sql stable as $$
  select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
    (nullif(current_setting('request.claims', true), '')::jsonb ->> 'user_id'))::uuid ${more} $$`
const made = await admin.post('/gateway/query', {
  query: `create schema auth; grant usage on schema auth to ${roles.member}; ${uid()};
    create table note (id int primary key, owner uuid, text text); alter table note enable row level security;
    create policy own on note for select to ${roles.member} using (owner = (select auth.uid()));
    grant select on note to ${roles.member}`,
})
assert.equal(made.status, 200, made.text)
const enabled = await admin.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
assert.equal(enabled.status, 200, enabled.text)

const follow = async (who: Actor): Promise<EventStream> => {
  const stream = await openStream(`${t.url}/realtime`, {
    headers: { ...who.headers },
    body: { tables: [{ table_name: 'note' }] },
  })
  await stream.next('ready')
  return stream
}
const ids = (stream: EventStream): string =>
  [...pageOf(stream, 'note').values()]
    .map(({ id }) => id)
    .toSorted()
    .join()

test('a policy with auth.uid() is followed, by each user as their own', async () => {
  const [ada, bea] = [await follow(adas), await follow(beas)]
  for (let id = 1; id <= 6; id++)
    await sql(`insert into note values (${id}, '${id % 2 === 0 ? users.ada.id : users.bea.id}', 'new')`)
  await eventually(() => ids(ada) === '2,4,6' && ids(bea) === '1,3,5')
  await sql(`update note set owner = '${users.bea.id}' where id = 2`)
  await eventually(() => ids(ada) === '4,6' && ids(bea) === '1,2,3,5')
  for (const stream of [ada, bea]) {
    assert.ok(!stream.seen.some(({ name }) => name === 'reset'))
    stream.close()
  }
})

test('when the function is replaced, streams begin again by the new one, or end where it cannot be followed', async () => {
  const ada = await follow(adas)
  assert.equal(ids(ada), '4,6')
  await sql(uid().replace('coalesce(', `coalesce('${users.bea.id}', `))
  assert.equal((await ada.next('reset')).data.reason, 'policy_changed')
  await ada.next('ready')
  assert.equal(ids(ada), '1,2,3,5')
  await sql(uid('from now()'))
  await ada.ended
  assert.deepEqual(ada.seen.at(-1)?.data, { reason: 'policy_changed' })
  const refused = await adas.post('/realtime', { tables: [{ table_name: 'note' }] })
  assert.deepEqual([refused.status, refused.body.code], [400, 'policy_not_live'])
})
