import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import type { Actor } from '#test/harness.ts'
import { createSecuredTables } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, beas, secured } = await createSecuredTables()
const [ada, bea] = [users.ada.id, users.bea.id]
const made = await admin.post('/gateway/query', {
  query: 'create table note (id int primary key, user_id uuid, text text)',
})
assert.equal(made.status, 200, made.text)
await secured('note', [{ preset: 'owner', column: 'user_id' }])
const enabled = await admin.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
assert.equal(enabled.status, 200, enabled.text)

const follow = async (who: Actor, lastId = ''): Promise<EventStream> => {
  const stream = await openStream(`${t.url}/realtime`, {
    headers: { ...who.headers, ...(lastId !== '' && { 'last-event-id': lastId }) },
    body: { tables: [{ table_name: 'note' }] },
  })
  await stream.next('ready')
  return stream
}
const shown = (...streams: readonly EventStream[]): string =>
  [...pageOf({ seen: streams.flatMap(({ seen }) => seen) }, 'note').values()]
    .map(({ id, text }) => `${id} ${text}`)
    .toSorted()
    .join()

test('rows that move between owners are told to both, also to one who was away, and rows of others to nobody else', async () => {
  await sql(`insert into note values (1, '${ada}', 'one'), (2, '${ada}', 'two'), (3, '${bea}', 'three')`)
  // Three cohorts that are chosen by owner.
  const [away, stays, beasOwn] = [await follow(adas), await follow(adas), await follow(beas)]
  const lastId = away.lastId() ?? assert.fail()
  away.close()
  await away.ended
  for (const statement of [
    `insert into note select n, '${bea}', 'of Bea' from generate_series(100, 700) n`,
    `update note set user_id = '${bea}' where id = 1; update note set user_id = '${ada}' where id = 3`,
    `insert into note values (4, '${ada}', 'four'); update note set text = 'changed' where id = 2`,
    `update note set user_id = '${ada}' where id = 100; update note set user_id = '${bea}' where id = 100`,
    `delete from note where id between 101 and 700`,
    `update note set id = 5 where id = 4; update note set id = 104 where id = 100`,
  ])
    await sql(statement)
  const expected = '2 changed,3 three,5 four'
  await eventually(() => shown(stays) === expected)
  const back = await follow(adas, lastId)
  await eventually(() => shown(away, back) === expected)
  await eventually(() => shown(beasOwn) === '1 one,104 of Bea')
  assert.ok(!back.seen.some(({ name }) => name === 'snapshot'), 'it went on with its page')
  for (const { seen } of [stays, back])
    assert.ok(!seen.some(({ data }) => data.key?.id > 100), 'no key of Bea was told to Ada')
  await sql(`delete from note where user_id = '${ada}'`)
  await eventually(() => shown(stays) === '' && shown(away, back) === '')
  for (const stream of [stays, beasOwn, back]) stream.close()
})
