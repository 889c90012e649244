import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createCalls } from '#test/drivers/calls.ts'
import { driverContract } from '#test/drivers/contract.ts'
import { createBookshop } from '#test/postgrest/bookshop.ts'
import { ANY_CHARACTER } from '#test/property/any-character.ts'

const { driver, endpoint, run, reset } = await createBookshop()
const { fetch, insert, update } = createCalls(() => driver)
const unsupported = { code: 'unsupported_by_driver', status: 400 }

driverContract({
  driver: () => driver,
  reset,
  cannot: [
    'cast',
    'column of a check',
    'update_body',
    'limited writes',
    'transaction',
    'idempotency',
    'sql',
    'run',
    'indexes',
  ],
})

test('names with any characters are only names', async () => {
  const names = [
    ...['a,b', 'x.eq.1', 'or', 'and', 'not', 'select', 'limit', 'order', 'columns', 'a:b', 'a::text', 'a->b', 'a->>b'],
    ...['*', 'count', 'with space', ' lead', 'ü', "it's", '(a)', 'a!b', 'not.and', '%25', 'a&b=c', 'a+b', '..', '__proto__'],
    ...['a" b', '"', 'x",id,"y', 'back\\slash', '\\', 'a\\"b', 'x",or(id.gt.0'],
  ] // biome-ignore format: a list
  const columns = names.map((name) => `"${name.replaceAll('"', '""')}" text`).join(', ')
  await run(`create table "odd, (table)?#%2F" (id int primary key, ${columns})`)
  const table = 'odd, (table)?#%2F'
  const row = Object.fromEntries(names.map((name, index) => [name, `value ${index}`]))
  assert.deepEqual((await insert(table, { id: 1, ...row })).rows, [{ id: 1, ...row }])
  for (const name of names) {
    const column = name.replace(/["\\]/g, '\\$&')
    const found = await fetch({
      table,
      columns: [`"${column}"`],
      conditions: [{ column: name, value: row[name] }],
      sort_by: { column: name },
    })
    assert.deepEqual(found.rows, [Object.fromEntries([[name, row[name]]])], name)
    const changed = await update({
      table,
      set: Object.fromEntries([[name, 'new']]),
      conditions: [{ column: name, operator: 'in', value: [row[name] ?? ''] }],
      columns: ['id'],
    })
    assert.equal(changed.affected, 1, name)
  }
  const answer = await insert(table, { id: 2 }, { on_conflict: 'id', columns: ['renamed:"or"'] })
  assert.deepEqual(answer.rows, [{ renamed: null }])
})

test('a column with a quote or a backslash in its name is read with the others, also under such a name', async () => {
  await run('create table quoted (id int primary key, "a"" b" text)')
  await insert('quoted', { id: 1, 'a" b': 'x' })
  assert.deepEqual((await fetch({ table: 'quoted' })).rows, [{ id: 1, 'a" b': 'x' }])
  const renamed = await fetch({ table: 'quoted', columns: '"x\\"\\\\y":id' })
  assert.deepEqual(renamed.rows, [{ 'x"\\y': 1 }])
})

test('a table whose name is no segment of a path is refused', async () => {
  await run('create table ".." (id int)')
  const before = endpoint.asked.length
  await assert.rejects(fetch({ table: '".."' }), unsupported)
  assert.ok(endpoint.asked.slice(before).every((line) => line === 'GET /rest/v1/'))
})

test('values are only values, in every operator', async () => {
  await run('create table texts (id int primary key, t text)')
  const special = fc.constantFrom(...'",.:()\\{}[]%*&=+# \n', "'", 'null', 'and(', '.eq.', '')
  const unit = fc.oneof(special, fc.string({ unit: ANY_CHARACTER, maxLength: 4 }))
  const text = fc.array(unit, { maxLength: 6 }).map((parts) => parts.join('').replaceAll('\0', ''))
  await fc.assert(
    fc.asyncProperty(text, text, async (one, other) => {
      await run('truncate texts')
      await insert('texts', [
        { id: 1, t: one },
        { id: 2, t: other },
      ])
      const same = one === other ? [1, 2] : [1]
      const found = async (operator: string, value: unknown) => {
        const { rows } = await fetch({
          table: 'texts',
          columns: 'id',
          sort_by: 'id',
          conditions: [{ column: 't', operator, value }],
        })
        return rows.map(({ id }: { id: number }) => id)
      }
      assert.deepEqual(await found('eq', one), same)
      assert.deepEqual(await found('in', [one]), same)
      assert.deepEqual(await found('in', [one, other]), [1, 2])
      assert.deepEqual(await found('neq', one), one === other ? [] : [2])
      const literally = one.replace(/[\\%_]/g, '\\$&')
      if (one.includes('*')) await assert.rejects(found('like', literally), unsupported)
      else assert.deepEqual(await found('like', literally), same)
    }),
    { numRuns: 25 },
  )
})

test('numbers keep every digit, in columns, in JSON and in relations', async () => {
  await reset()
  await run(
    'create table digits (id bigint primary key, n numeric, f double precision, j json, a numeric[], of bigint references digits)',
    `insert into digits values (9007199254740993, 1.500, 0.1, '{"n":12345678901234567890.10}', '{1.10,2}', null),
      (2, 123456789012345678901234567890.5, 1e300, 'null', null, 9007199254740993)`,
  )
  const { text } = await fetch({ table: 'digits', sort_by: { column: 'id', direction: 'desc' }, limit: 1 })
  assert.equal(
    text,
    '[{"id":9007199254740993,"n":1.500,"f":0.1,"j":{"n":12345678901234567890.10},"a":[1.10,2],"of":null}]',
  )
  const nested = await fetch({
    table: 'digits',
    columns: 'n,of(id,n)',
    conditions: [{ column: 'id', value: 2 }],
    strip_nulls: true,
  })
  assert.equal(nested.text, '[{"n":123456789012345678901234567890.5,"of":{"id":9007199254740993,"n":1.500}}]')
})
