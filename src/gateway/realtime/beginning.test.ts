import assert from 'node:assert/strict'
import { test } from 'node:test'
import { liveTables } from '#test/live-tables.ts'

const { t, key, sql, ddl, liveTable, follow, insert } = await liveTables(
  `create table author (id int primary key, name text); create table quiet (id int primary key);
  create view seen as select * from quiet; create table keyless (id int)`,
)

test('a stream resumes after the event whose id it is given, or says that it begins again', async () => {
  const table = await liveTable()
  await insert(table, [{ id: 1 }, { id: 2 }])
  const before = await follow([{ table_name: table }])
  await before.next('ready')
  const id = before.lastId() ?? assert.fail()
  before.close()
  await sql(`insert into ${table} values (3); delete from ${table} where id = 1`)
  const resumed = await follow([{ table_name: table }], { 'last-event-id': id })
  assert.equal((await resumed.next()).name, 'ready')
  const told = [await resumed.next(), await resumed.next()].map(({ name, data }) => [name, data.key.id])
  assert.deepEqual(told.toSorted(), [
    ['change', 3],
    ['leave', 1],
  ])
  resumed.close()

  const other = { table_name: table, conditions: { eq_column: 'id', eq_value: 3 } }
  const ids = ['0', `${id}x`, id.replace(/\..*/, '.'), id.slice(0, 20), 'x'.repeat(4_000)]
  for (const [asked, lastId] of [
    ...ids.map((lost) => [{ table_name: table }, lost] as const),
    [other, id] as const,
  ]) {
    const fresh = await follow([asked], { 'last-event-id': lastId })
    assert.equal((await fresh.next()).name, 'reset', lastId)
    assert.equal((await fresh.next()).name, 'snapshot', lastId)
    await fresh.next('ready')
    fresh.close()
  }
})

test('tables that are not live, and requests that a fetch refuses, are refused before the stream begins', async () => {
  const table = await liveTable('id int primary key, author int references author (id)')
  const refused = async (tables: readonly object[], headers = key.headers) => {
    const { status, body } = await t.anon.post('/realtime', { tables }, { headers: { ...headers } })
    return [status, body.code]
  }
  const nothing = await t.key(['author.read'])
  for (const table_name of ['quiet', 'seen', 'keyless'])
    assert.deepEqual(await refused([{ table_name }]), [400, 'not_live'], table_name)
  assert.deepEqual(await refused([{ table_name: table, columns: ['id', 'author(name)'] }]), [400, 'not_live'])
  assert.deepEqual(await refused([{ table_name: table }, { table_name: table }]), [400, 'not_live'])
  assert.deepEqual(await refused([{ table_name: 'nowhere' }]), [404, 'table_not_found'])
  assert.deepEqual(await refused([{ table_name: table, columns: ['x'] }]), [400, 'unknown_column'])
  assert.deepEqual(await refused([{ table_name: table }], nothing.headers), [403, 'insufficient_rights'])
  assert.deepEqual(await refused([{ table_name: table }], { 'x-service-client': 'default' }), [
    401,
    'api_key_required',
  ])
  assert.deepEqual(await refused([]), [400, 'validation_error'])
  const inQuery = await t.anon.post(
    `/realtime?api_key=${key.apiKey}`,
    { tables: [{ table_name: table }] },
    {
      headers: { 'x-service-client': 'default' },
    },
  )
  assert.deepEqual([inQuery.status, inQuery.body.code], [400, 'key_in_query'])
})

test('conditions that depend on the time are refused, in whatever they are written', async () => {
  const table = await liveTable('id int primary key, at timestamptz, until date, title text')
  const asked = async (conditions: object) => {
    const { status, body } = await key.post('/realtime', {
      tables: [{ table_name: table, conditions }],
      snapshot: false,
    })
    return [status, body.code, body.data?.details?.field]
  }
  const refused = [400, 'not_live', 'conditions']
  for (const condition of [
    { operator: 'lt', column: 'at', value: 'now' },
    { operator: 'gte', column: 'until', value: ' Tomorrow' },
    { operator: 'in', column: 'until', value: ['2026-01-31', 'today'] },
    { not: { operator: 'lt', column: 'at', value: 'yesterday 12:00' } },
    { operator: 'lt', column: 'at', value: 'today04:00' },
    { operator: 'lt', column: 'at', value: '04:00:00today' },
    [{ eq_column: 'id', eq_value: 1 }, { or: [{ operator: 'gt', column: 'at', value: 'today' }] }],
  ])
    assert.deepEqual(await asked(condition), refused, JSON.stringify(condition))
  const stream = await follow([
    {
      table_name: table,
      conditions: [
        { operator: 'lt', column: 'at', value: '2030-01-31 12:00+02' },
        { eq_column: 'title', eq_value: 'now' },
      ],
    },
  ])
  await stream.next('ready')
  stream.close()
})

test('a table that is not live any more ends its streams', async () => {
  const table = await liveTable()
  const stream = await follow([{ table_name: table }])
  await stream.next('ready')
  await key.send('PUT', `/management/tables/${table}/realtime`, { body: { enabled: false } })
  assert.equal((await stream.next()).data.reason, 'table_changed')
  await stream.ended
})

test('more rows than a fetch may have are no stream', async () => {
  const table = await liveTable()
  await sql(`insert into ${table} select n from generate_series(1, ${t.config.gateway.max_rows + 1}) n`)
  const stream = await follow([{ table_name: table, columns: ['id'] }])
  await stream.ended
  assert.deepEqual(stream.seen.at(-1)?.data, { reason: 'too_many' })
  const some = { operator: 'lt', column: 'id', value: 100 }
  const narrower = await follow([{ table_name: table, columns: ['id'], conditions: some }])
  await narrower.next('ready')
  narrower.close()
})

test('rows of child tables that have one key do not hide the rows of others', async () => {
  const table = await liveTable('id int primary key, pages int')
  await ddl(`create table ${table}_child (primary key (id)) inherits (${table});
    insert into ${table} values (1, 1); insert into ${table}_child values (1, 1), (2, 1)`)
  const stream = await follow([{ table_name: table }])
  await stream.next('ready')
  await sql(`update ${table} set pages = 2`)
  await stream.next('change')
  assert.deepEqual((await stream.next()).data, {
    table,
    op: 'update',
    key: { id: 2 },
    row: { id: 2, pages: 2 },
  })
  stream.close()
})
