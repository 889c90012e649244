import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feedDatabase, feedOn, told } from '#test/changes.ts'

const { url, sql } = await feedDatabase()
const { feed, live, read } = feedOn(url)
await sql(`create type mood as enum ('sad', 'glad'); create domain feeling as mood; create type pair as (one int, two mood);
  create type unused as enum ('a')`)

for (const [type, change, name] of [
  ['mood', `alter type mood rename value 'sad' to 'blue'`, 'label of an enum'],
  ['mood[]', `alter type mood rename value 'blue' to 'sad'`, 'label of the enum of an array'],
  ['feeling', `alter type mood rename value 'sad' to 'low'`, 'label of the enum below a domain'],
  ['pair', `alter type pair rename attribute one to first cascade`, 'member of a composite type'],
] as const)
  test(`a ${name} that gets another name is told as a changed table, since rows are written otherwise`, async () => {
    const table = name.replaceAll(' ', '_')
    await sql(`create table ${table} (id int primary key, value ${type})`)
    await live(table)
    const start = await feed.position()
    await sql(change)
    const batch = await read(start)
    assert.ok(told(batch).includes(`${table} reset table_changed`), told(batch).join())
    await sql(`alter type unused rename value 'a' to 'b'; alter type unused rename value 'b' to 'a'`)
    assert.deepEqual(told(await read(batch.position)), [])
  })
