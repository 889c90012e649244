import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import type { Actor } from '#test/harness.ts'
import { createSecuredTables } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, beas, roles } = await createSecuredTables()
const CLAIMED = `(nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid`
const made = await admin.post('/gateway/query', {
  query: `create table team (user_id uuid, team int, primary key (user_id, team));
    create table note (id int primary key, owner uuid, team int, text text); alter table note enable row level security;
    create policy own on note for select to ${roles.member}
      using (owner = ${CLAIMED} or team in (select team from public.team where user_id = ${CLAIMED}));
    grant select on team, note to ${roles.member}`,
})
assert.equal(made.status, 200, made.text)
const enabled = await admin.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
assert.equal(enabled.status, 200, enabled.text)
const [ada, bea] = [users.ada.id, users.bea.id]
const reset = () => sql(`delete from team; delete from note; insert into note (id, owner, text) values (1, '${ada}', 'first'), (2, '${ada}', 'second'), (3, '${bea}', 'third')`) // biome-ignore format: one statement

const follow = async (who: Actor, lastId?: string): Promise<EventStream> => {
  const stream = await openStream(`${t.url}/realtime`, {
    headers: { ...who.headers, ...(lastId !== undefined && { 'last-event-id': lastId }) },
    body: { tables: [{ table_name: 'note' }] },
  })
  await stream.next('ready')
  return stream
}
/** A stream whose connection has broken, and its last id. */
async function broken(who: Actor): Promise<{ readonly before: EventStream; readonly lastId: string }> {
  const before = await follow(who)
  const lastId = before.lastId() ?? assert.fail()
  before.close()
  await before.ended
  return { before, lastId }
}
const names = ({ seen }: EventStream) => seen.map(({ name }) => name)
const BEGUN = ['reset', 'snapshot', 'ready']
/** The page of a reader who applies the events of both streams. */
const shown = (...streams: readonly EventStream[]): string =>
  [...pageOf({ ...streams[0], seen: streams.flatMap(({ seen }) => seen) } as EventStream, 'note').values()]
    .map(({ id, text }) => `${id} ${text}`)
    .toSorted()
    .join()

test('a reader behind policies who comes back is told what has changed, and of no row of others', async () => {
  await reset()
  const { before, lastId } = await broken(adas)
  await sql(`update note set text = 'changed' where id = 1; update note set owner = '${bea}' where id = 2;
    insert into note (id, owner, text) values (4, '${ada}', 'new'), (5, '${bea}', 'hidden'); delete from note where id = 3`)
  const resumed = await follow(adas, lastId)
  await eventually(() => shown(before, resumed) === '1 changed,4 new')
  assert.ok(!names(resumed).includes('snapshot') && !names(resumed).includes('reset'))
  const keys = resumed.seen.flatMap(({ data }) => (data.key === undefined ? [] : [data.key.id]))
  assert.deepEqual([...new Set(keys)].toSorted(), [1, 2, 4])
  await sql(`delete from note where id = 4`)
  await eventually(() => shown(before, resumed) === '1 changed')
  resumed.close()
})

/** Everything that was written before has been told. */
async function settled(stream: EventStream): Promise<void> {
  for (const statement of [
    `insert into note (id, owner) values (90, '${ada}')`,
    'delete from note where id = 90',
  ]) {
    await sql(statement)
    while ((await stream.next()).data.key?.id !== 90);
  }
}

test('events that may not have arrived are told again, from the id of the last one that has', async () => {
  await reset()
  const stream = await follow(adas)
  await settled(stream)
  const ids: string[] = []
  for (const statement of [
    `insert into note (id, owner, text) values (10, '${ada}', 'ten')`,
    `insert into note (id, owner, text) values (11, '${ada}', 'eleven')`,
    'delete from note where id = 1',
    `update note set text = 'more' where id = 10`,
  ]) {
    await sql(statement)
    ids.push((await stream.next()).id ?? assert.fail())
  }
  assert.equal(new Set(ids).size, ids.length)
  stream.close()
  await stream.ended
  await sql('delete from note where id = 11')
  const until = stream.seen.slice(0, stream.seen.findIndex(({ id }) => id === ids[0]) + 1)
  const resumed = await follow(adas, ids[0])
  await eventually(() => shown({ ...stream, seen: until }, resumed) === '10 more,2 second')
  assert.ok(!names(resumed).includes('snapshot'))
  resumed.close()
})

test('ids of others, of other requests, of later events and used ones begin again', async () => {
  await reset()
  const { lastId } = await broken(adas)
  assert.deepEqual(names(await follow(beas, lastId)), BEGUN)
  const other = await openStream(`${t.url}/realtime`, {
    headers: { ...adas.headers, 'last-event-id': lastId },
    body: { tables: [{ table_name: 'note', columns: ['id'] }] },
  })
  await other.next('ready')
  assert.deepEqual(names(other), BEGUN)
  assert.deepEqual(names(await follow(adas, lastId)), ['ready'], 'nobody else has used it up')
  assert.deepEqual(names(await follow(adas, lastId)), BEGUN)
  const next = await broken(adas)
  assert.deepEqual(names(await follow(adas, next.lastId.replace(/\d+$/, '99'))), BEGUN)
})

test('what a membership decides and what policies say is as of the return', async () => {
  await reset()
  const first = await broken(adas)
  await sql(
    `insert into note (id, owner, team, text) values (20, '${bea}', 7, 'of the team'); insert into team values ('${ada}', 7)`,
  )
  const joined = await follow(adas, first.lastId)
  await eventually(() => shown(first.before, joined) === '1 first,2 second,20 of the team')
  const lastId = joined.lastId() ?? assert.fail()
  joined.close()
  await joined.ended
  await sql('delete from team')
  const left = await follow(adas, lastId)
  await eventually(() => shown(first.before, joined, left) === '1 first,2 second')
  assert.ok(!names(left).includes('snapshot'))
  const again = left.lastId() ?? assert.fail()
  left.close()
  await left.ended
  await sql(`alter policy own on note using (owner = ${CLAIMED} and id <> 2)`)
  const changed = await follow(adas, again)
  await eventually(() => shown(first.before, joined, left, changed) === '1 first')
  assert.ok(names(changed).includes('snapshot'))
  changed.close()
})

test('a stream that the service takes for open ends when its reader is back', async () => {
  await reset()
  const open = await follow(adas)
  const resumed = await follow(adas, open.lastId())
  await open.ended
  assert.deepEqual(names(resumed), ['ready'])
  await sql(`update note set text = 'once' where id = 1`)
  // Before it, the row may be told again as it was.
  const isTold = ({ seen }: EventStream) => seen.some(({ data }) => data.row?.text === 'once')
  await eventually(() => isTold(resumed))
  assert.ok(!isTold(open))
  resumed.close()
})
