import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feedDatabase, feedOn, told } from '#test/changes.ts'

// A caller who may run SQL as the client's own role may write anything into the feed.
const { url, sql } = await feedDatabase()
const { feed, live, read } = feedOn(url)
await sql('create table one (id int primary key); create table pair (a int, b text, primary key (a, b))')
await live('one', 'pair')

const ODD: Readonly<Record<string, string>> = {
  'a key that is null': `('one'::regclass, 'u', array[null]::text[])`,
  'a key of two columns': `('one'::regclass, 'd', array[['1', '2']])`,
  'a key of a column too few': `('pair'::regclass, 'i', array['1'])`,
  'a part of a key that is null': `('pair'::regclass, 'i', array[['1', null]])`,
  'another operation': `('one'::regclass, 'x', array['1'])`,
}

for (const [what, values] of Object.entries(ODD))
  test(`a note with ${what} is told as a changed table, and the next ones as ever`, async () => {
    const start = await feed.position()
    await sql(`insert into service_changes (relation, op, keys) values ${values}`)
    const batch = await read(start)
    const [, table] = /\('(\w+)'/.exec(values) ?? []
    assert.deepEqual(told(batch), [`${table} reset table_changed`])
    await sql(`truncate one; insert into pair values (1, '${what}')`)
    const next = [`one reset truncated`, `pair insert {"a":1,"b":"${what}"}`]
    assert.deepEqual(told(await read(batch.position)).toSorted(), next)
  })

test('notes of no time, of transactions to come and of other tables stop nothing', async () => {
  const start = await feed.position()
  await sql(`insert into service_changes (relation, op, keys, at) values ('one'::regclass, 'u', '{7}', '-infinity');
    insert into service_changes (relation, op, keys, xid) values ('one'::regclass, 'u', '{8}', '18446744073709551615');
    insert into service_changes (relation, op, keys) values (0, 'u', '{9}'), ('pg_class'::regclass, 't', null)`)
  const batch = await read(start)
  assert.deepEqual(told(batch), ['one update {"id":7}'])
  assert.ok(Number.isFinite(batch.lagSeconds))
  const next = await read(batch.position)
  assert.deepEqual(told(next), [], 'not again for ever')
})
