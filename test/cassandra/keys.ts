import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Driver } from '#databases/drivers/driver.ts'
import { createCalls } from '#test/drivers/calls.ts'
import type { Keyspace } from './server.ts'

export type Place = {
  readonly driver: () => Driver
  readonly keyspace: () => Keyspace
  readonly skip: string | false
}

/** Tests of values and keys that are empty, nested, unsorted, or not in the server's canonical form. */
export function testKeys({ driver, keyspace, skip }: Place): void {
  const { fetch, insert, update, remove, count } = createCalls(driver)
  const duplicate = { code: 'unique_violation', status: 409 }

  test('finds rows by keys that are not in canonical form', {
    skip,
  }, async () => {
    await keyspace().run(
      `create table prices (shop int, price decimal, tags frozen<set<text>>, names frozen<map<text, frozen<set<int>>>>, note text,
        primary key (shop, price, tags, names))`,
    )
    driver().invalidate()
    const key = { shop: 1, price: '1.50', tags: ['b', 'a', 'b'], names: { b: [10, 9, -1], a: [] } }
    const kept = { shop: 1, price: 1.5, tags: ['a', 'b'], names: { a: [], b: [-1, 9, 10] } }
    assert.deepEqual((await insert('prices', { ...key, note: 'n' })).rows, [{ ...kept, note: 'n' }])
    const named = (price: string, tags: string[]) => ({
      table: 'prices',
      conditions: Object.entries({ ...key, price, tags }).map(([column, value]) => ({ column, value })),
    })
    assert.deepEqual((await fetch(named('1.5', ['a', 'b']))).rows, [{ ...kept, note: 'n' }])
    const changed = await update({ ...named('1.500', ['b', 'a']), set: { note: 'm' } })
    assert.deepEqual([changed.affected, changed.rows], [1, [{ ...kept, note: 'm' }]])
    const other = { ...key, price: '1.5', tags: ['a', 'b'] }
    const upsert = await insert(
      'prices',
      { ...other, note: 'o' },
      { on_conflict: Object.keys(key), update_body: { note: 'p' } },
    )
    assert.deepEqual([upsert.affected, upsert.rows[0].note], [1, 'p'])
    await assert.rejects(
      insert('prices', [
        { ...other, price: '7' },
        { ...other, price: '7.0' },
      ]),
      duplicate,
    )
    await assert.rejects(insert('prices', { ...other, price: '15e-1' }), duplicate)
    assert.equal(await count({ table: 'prices' }), 1)
    const deleted = await remove(named('1.5000', ['a', 'b', 'a']))
    assert.deepEqual([deleted.affected, deleted.rows[0].note, await count({ table: 'prices' })], [1, 'p', 0])
  })

  test('partition keys with different bytes are different, as on the server', { skip }, async () => {
    await keyspace().run(
      'create table rates (rate decimal primary key, n int)',
      'create table whole (id frozen<map<int, text>> primary key)',
      'create table crews (members frozen<set<frozen<map<text, int>>>> primary key, n int)',
    )
    driver().invalidate()
    for (const [n, rate] of ['1.0', '1.00'].entries()) await insert('rates', { rate, n })
    const changed = await update({
      table: 'rates',
      set: { n: 7 },
      conditions: [{ column: 'rate', value: '1.00' }],
    })
    assert.deepEqual(changed.rows, [{ rate: 1, n: 7 }])
    const { text } = await fetch({ table: 'rates', conditions: [{ column: 'rate', value: '1.0' }] })
    assert.equal(text, '[{"rate":1.0,"n":0}]')
    const given = [{ b: 2, a: 1 }, { a: 1 }, { a: 1, b: 2 }]
    assert.equal((await insert('crews', { members: given, n: 1 })).rows.length, 1)
    await assert.rejects(insert('crews', { members: given.slice(1), n: 2 }), duplicate)
    await assert.rejects(insert('whole', { id: { 1: 'a', '01': 'b' } }), {
      code: 'invalid_value',
      status: 422,
    })
  })

  test('sorts sets of every type in keys as the server does', {
    skip,
  }, async () => {
    const sets = {
      text: ['é', 'z', 'a', '😀', '', 'ab'],
      int: [1, -1, 0, 2147483647, -2147483648],
      tinyint: [-128, 127, 0],
      bigint: ['-9223372036854775808', 5, -5],
      varint: [-129, 128, 0, '-99999999999999999999', 7, 255, 256, -1],
      decimal: ['-1.53', '-1.5', '0.00', '1.50', '12', '-0.001', '1e3', '999.9', '1.5', '0', '-15e1'],
      double: [-0.5, 'NaN', 1e300, -1e300, 0, '-0', 'Infinity'],
      float: [1.5, -1.5, 'NaN', '-Infinity', '-0', 0],
      boolean: [true, false, true],
      uuid: [
        'ffffffff-0000-4000-8000-000000000001', '0197f2c8-0000-7000-8000-000000000001', '00000000-0000-4000-8000-000000000001',
        '50554d6e-29bb-11e5-b345-feff819cdc9f', '00000000-29bc-11e5-0345-feff819cdc9f',
      ],
      timeuuid: ['50554d6e-29bb-11e5-b345-feff819cdc9f', '50554d6e-29bb-11e5-0345-feff819cdc9f', '00000000-29bc-11e5-b345-feff819cdc9f'],
      inet: ['10.0.0.1', '::1', '9.9.9.9', '255.0.0.1', '2001:db8::1'],
      blob: ['\\xff', '\\x00', '\\x'],
      date: ['2026-01-31', '1969-12-31', '0001-01-01'],
      time: ['10:00', '09:59:59.999999999'],
      timestamp: ['2026-01-31T00:00:00Z', '1901-01-01T00:00:00Z', '9223372036854775807'],
      'frozen<list<int>>': [[1, 2], [1], [], [-1, 5]],
      'frozen<set<decimal>>': [['2', '1.0'], ['1']],
      'frozen<map<text, int>>': [{ b: 1, a: 2 }, { a: 1 }, { a: 1, b: -1 }],
      'frozen<tuple<int, text>>': [[1, null], [null, 'a'], [1, 'a'], [-1, 'z']],
      'frozen<vector<int, 2>>': [[1, -1], [-1, 1]],
    } // biome-ignore format: a table
    const columns = Object.keys(sets).map((type, index) => `c${index} frozen<set<${type}>>`)
    const key = Object.fromEntries(Object.values(sets).map((values, index) => [`c${index}`, values]))
    await keyspace().run(
      `create table sorted (part int, ${columns.join()}, n int, primary key (part, ${Object.keys(key).join()}))`,
    )
    driver().invalidate()
    const [made] = (await insert('sorted', { part: 1, ...key, n: 1 })).rows
    for (const [index, [type, values]] of Object.entries(sets).entries())
      assert.ok(made?.[`c${index}`].length > 1 && made[`c${index}`].length <= values.length, type)
    const turned = Object.fromEntries(
      Object.entries(key).map(([name, values]) => [name, values.toReversed()]),
    )
    const conditions = Object.entries({ part: 1, ...turned }).map(([column, value]) => ({ column, value }))
    const { affected, rows } = await update({ table: 'sorted', set: { n: 2 }, conditions })
    assert.deepEqual([affected, rows.length, rows[0]?.n], [1, 1, 2])
    assert.equal(await count({ table: 'sorted' }), 1)
  })

  test('nested empty values and vectors of any type are returned unchanged', {
    skip,
  }, async () => {
    await keyspace().run(
      'create type inner_type (name text, tags frozen<list<int>>, "__proto__" text)',
      `create table shapes (id int primary key, fl frozen<list<int>>, fs frozen<set<text>>, fm frozen<map<text, int>>,
        nested frozen<list<frozen<list<text>>>>, mixed map<text, frozen<set<int>>>, record frozen<inner_type>,
        pair tuple<text, frozen<list<int>>>, vi vector<int, 2>, vt vector<text, 2>, vs vector<smallint, 2>, vd vector<date, 1>,
        vv vector<frozen<vector<float, 2>>, 2>, vr vector<frozen<inner_type>, 1>, lv list<frozen<vector<double, 1>>>, ip inet)`,
    )
    driver().invalidate()
    const record = JSON.parse('{"name":"","tags":[],"__proto__":"p"}')
    const row = {
      id: 1, fl: [], fs: [], fm: {}, nested: [[], ['']], mixed: { '': [] }, record, pair: ['', []], vi: [-1, 2], vt: ['', 'x'.repeat(200)],
      vs: [-32768, 7], vd: ['2026-01-31'], vv: [[0.5, 1], [2, 3]], vr: [record], lv: [[1e300]], ip: '64:ff9b::192.0.2.1',
    } // biome-ignore format: a table
    const [answer] = (await insert('shapes', row)).rows
    assert.deepEqual(
      Object.entries(answer).sort(),
      Object.entries({ ...row, ip: '64:ff9b::c000:201' }).sort(),
    )
    await keyspace().run('alter type inner_type add late int')
    driver().invalidate()
    const { text } = await fetch({ table: 'shapes', columns: 'record' })
    assert.equal(text, '[{"record":{"name":"","tags":[],"__proto__":"p","late":null}}]')
    for (const vi of [[1], [1, 2, 3], [1, null], ['a', 1]])
      await assert.rejects(insert('shapes', { id: 2, vi }), {
        code: 'invalid_value',
        details: { column: 'vi' },
      })
  })

  test('the lists of `in` conditions are limited to a thousand combinations in reads and writes', {
    skip,
  }, async () => {
    await keyspace().run('create table grid (part int, x int, y int, n int, primary key (part, x, y))')
    driver().invalidate()
    const upTo = (length: number) => Array.from({ length }, (_, index) => index)
    const within = (xs: number, ys: number) => ({
      table: 'grid',
      conditions: [
        { column: 'part', value: 1 },
        { operator: 'in', column: 'x', value: upTo(xs) },
        { operator: 'in', column: 'y', value: upTo(ys) },
      ],
    })
    await insert('grid', { part: 1, x: 24, y: 39, n: 1 })
    assert.equal((await fetch(within(25, 40))).rows.length, 1)
    assert.equal(await count(within(25, 40)), 1)
    const refusal = { code: 'too_complex', status: 400, details: { combinations: 1_025, most: 1_000 } }
    for (const ask of [
      () => fetch(within(25, 41)),
      () => count(within(25, 41)),
      () => update({ ...within(25, 41), set: { n: 2 } }),
      () => remove(within(25, 41)),
    ])
      await assert.rejects(ask(), refusal)
    assert.equal((await fetch({ table: 'grid' })).rows[0].n, 1)
  })

  test('rejects a write of more rows than fit into a batch before sending anything', {
    skip,
  }, async () => {
    const rows = Array.from({ length: 65_536 }, (_, y) => ({ part: 2, x: 0, y }))
    await assert.rejects(insert('grid', rows, { head: true }), { code: 'too_complex', status: 400 })
    assert.equal(await count({ table: 'grid', conditions: [{ column: 'part', value: 2 }] }), 0)
  })
}
