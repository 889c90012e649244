import assert from 'node:assert/strict'
import { test } from 'node:test'
import { feedDatabase, feedOn, told } from '#test/changes.ts'

const { url, sql, session } = await feedDatabase()
const { feed, live, read } = feedOn(url)

test('a session that has changed one key changes thousands at once, in time that grows with their number', async () => {
  await sql(
    `create table wide (a int, b text, primary key (a, b)); insert into wide select n, 'x' from generate_series(1, 9000) n`,
  )
  await live('wide')
  const start = await feed.position()
  const writer = await session()
  await writer.run('update wide set a = -a where a = 1')
  // Pairs of all keys would take minutes.
  await writer.run(`set statement_timeout = '20s'`)
  await writer.run('update wide set a = -a where a > 1')
  await writer.end()
  const batch = await read(start)
  assert.deepEqual(told(batch), ['wide reset too_many'])
  await sql('insert into wide values (1, $$y$$)')
  assert.deepEqual(told(await read(batch.position)), ['wide insert {"a":1,"b":"y"}'])
})

test('an update that exchanges keys tells each of them once', async () => {
  await sql(
    `create table moved (a int, b text, primary key (a, b)); insert into moved select n, 'x' from generate_series(1, 3) n`,
  )
  await live('moved')
  const start = await feed.position()
  await sql('update moved set a = a - 1')
  assert.deepEqual(told(await read(start)).toSorted(), [
    'moved delete {"a":3,"b":"x"}',
    'moved insert {"a":0,"b":"x"}',
    'moved update {"a":1,"b":"x"}',
    'moved update {"a":2,"b":"x"}',
  ])
})

test('a table that becomes live is no change of others with the same key', async () => {
  await sql('create table first (id int primary key); create table second (id int primary key)')
  await live('first')
  const start = await feed.position()
  await live('second')
  assert.deepEqual(told(await read(start)), ['second reset table_changed'])
})

test('a column of a key can have any name', async () => {
  const name = `a"$note$$do$'\\\\x''`
  await sql(`create table named ("${name.replaceAll('"', '""')}" int primary key)`)
  await live('named')
  const start = await feed.position()
  await sql('insert into named values (1)')
  assert.deepEqual(told(await read(start)), [`named insert ${JSON.stringify({ [name]: 1 })}`])
})
