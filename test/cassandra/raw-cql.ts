import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { requireAbility } from '#databases/drivers/abilities.ts'
import type { Driver, SqlRequest } from '#databases/drivers/driver.ts'
import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import type { Place } from './keys.ts'

export const cqlOn =
  (driver: () => Driver) =>
  (text: string, more: Partial<SqlRequest> = {}) =>
    requireAbility(
      driver(),
      'sql',
    )({
      text,
      values: undefined,
      readOnly: false,
      schema: undefined,
      database: undefined,
      maxRows: 1_000,
      presence: ALWAYS_PRESENT,
      ...more,
    })

/** Tests of CQL statements that callers write themselves. */
export function testRawCql({ driver, keyspace, skip }: Place): void {
  const cql = cqlOn(driver)
  const textOf = async (text: string, more: Partial<SqlRequest> = {}) =>
    Buffer.concat((await cql(text, more)).json).toString()

  test('columns keep their aliases, and duplicate names are rejected', { skip }, async () => {
    await keyspace().run(
      'create table notes (id int primary key, body text, parts list<int>)',
      `insert into notes (id, body, parts) values (1, 'b', [1, 2])`,
    )
    assert.equal(
      await textOf('select parts as "__proto__", body as "__columns", id as "constructor" from notes'),
      '[{"__proto__":[1,2],"__columns":"b","constructor":1}]',
    )
    for (const text of ['select id, id from notes', 'select id as a, body as a from notes'])
      await assert.rejects(cql(text), { code: 'invalid_sql', status: 400, message: /Two columns/ }, text)
  })

  test("a caller's CQL is not prepared, so it sees new columns of its table", {
    skip,
  }, async () => {
    const mark = randomBytes(8).toString('hex')
    const text = `select * from notes where body = '${mark}' allow filtering`
    assert.equal(await textOf(text), '[]')
    const prepared = await keyspace().rows('select query_string from system.prepared_statements')
    assert.ok(prepared.length > 0)
    assert.ok(!JSON.stringify(prepared).includes(mark))
    await keyspace().run('alter table notes add late int')
    assert.match(await textOf('select * from notes'), /"late":null/)
  })

  test("the lists of `in` are also limited in a caller's CQL, in every notation", {
    skip,
  }, async () => {
    await keyspace().run('create table cells (part int, x int, y int, primary key (part, x, y))')
    const upTo = (length: number) => Array.from({ length }, (_, index) => index)
    const listed = (length: number) => `in (${upTo(length).join()})`
    const refusal = { code: 'too_complex', status: 400, details: { combinations: 1_025, most: 1_000 } }
    const from = 'select * from cells where part = 1 and'
    assert.equal(await textOf(`${from} x ${listed(25)} and y ${listed(40)}`), '[]')
    assert.equal(await textOf(`${from} x in ? and y in ?`, { values: [upTo(25), upTo(40)] }), '[]')
    for (const [text, values] of [
      [`${from} x ${listed(25)} and y ${listed(41)}`],
      [`delete from cells where part = 1 and x ${listed(25)} and y IN/**/(${upTo(41).join()})`],
      [`${from} x in ? and y in ?`, [upTo(25), upTo(41)]],
      [`${from} x ${listed(25)} and y in ?`, [upTo(41)]],
    ] as const)
      await assert.rejects(cql(text, { values }), refusal, text.slice(0, 80))
    const each = upTo(50).map((x) => `delete from cells where part = 1 and x = ${x} and y ${listed(40)};`)
    await cql(`begin batch ${each.join(' ')} apply batch`)
    assert.equal(
      await textOf(
        `${from} (x, y) in (${upTo(900)
          .map((x) => `(${x}, 1)`)
          .join()})`,
      ),
      '[]',
    )
  })

  test('schema_name opens a connection to one node, and closes it after the statement', {
    skip,
  }, async () => {
    const other = `other_${randomBytes(4).toString('hex')}`
    await keyspace().run(
      `create keyspace ${other} with replication = { 'class': 'SimpleStrategy', 'replication_factor': 1 }`,
    )
    const clients = async () =>
      (await keyspace().rows(`select keyspace_name, port from system_views.clients`)).length
    try {
      await cql('create table there (id int primary key, n bigint)', { schema: other })
      const before = await clients()
      await cql('insert into there (id, n) values (?, ?)', { schema: other, values: [1, '9007199254740993'] })
      assert.equal(
        await textOf('select n from there where id = ?', { schema: other, values: [1] }),
        '[{"n":9007199254740993}]',
      )
      await assert.rejects(cql('select n from there'), { code: 'invalid_sql' })
      await assert.rejects(cql('select n from there', { schema: 'not_there' }), { code: 'invalid_sql' })
      const running = Array.from({ length: 4 }, () => textOf('select n from there', { schema: other }))
      for (const text of await Promise.all(running)) assert.equal(text, '[{"n":9007199254740993}]')
      for (let round = 0; round < 50 && (await clients()) > before; round++) await new Promise(setImmediate)
      assert.equal(await clients(), before)
    } finally {
      await keyspace().run(`drop keyspace ${other}`)
    }
  })
}
