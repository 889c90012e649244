import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { liveTables } from '#test/live-tables.ts'

const { t, sql, liveTable, follow } = await liveTables('select 1')

test('changes of a table are told while another one, which many follow, is locked', async () => {
  const [locked, other] = [await liveTable(), await liveTable()]
  const followers = await Promise.all(
    // As many cohorts as there are readings at the same time, and one more.
    [1, 2, 3, 4, 5].map((id) =>
      follow([{ table_name: locked, conditions: { operator: 'gte', column: 'id', value: id } }]),
    ),
  )
  const beside = await follow([{ table_name: other }])
  for (const one of [...followers, beside]) await one.next('ready')
  await withClient(t.clientUrl, async (locking) => {
    await locking.query(`begin; lock table ${locked} in access exclusive mode`)
    // A lock keeps others from writing, so that the change is noted by hand.
    await sql(`insert into service_changes (relation, op, keys) values ('${locked}'::regclass, 'u', '{9}')`)
    const waiting = `select count(*)::int as count from ${OWN_LOCKS} where relation = '${locked}'::regclass and not granted`
    await eventually(async () => (await sql(waiting))[0].count > 0)
    await sql(`insert into ${other} values (1)`)
    await eventually(() => beside.seen.some(({ data }) => data.key?.id === 1))
    assert.deepEqual(
      followers.map(({ seen }) => seen.filter(({ name }) => name === 'reset').length),
      followers.map(() => 0),
      'their readings still wait',
    )
    await locking.query(`insert into ${locked} values (9); commit`)
  })
  for (const one of followers) await eventually(() => one.seen.some(({ data }) => data.key?.id === 9))
  for (const one of [...followers, beside]) one.close()
})
