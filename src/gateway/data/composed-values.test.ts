import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Answer, testService } from '#test/harness.ts'

/** Composite values and extreme values: a value from a response can be written back unchanged. */

const t = await testService()
const key = await t.key(['gateway.*'])
const fetchRows = (more: object) => key.post('/gateway/fetch', { sort_by: 'id', ...more })
const put = (table_name: string, insert_body: unknown) =>
  key.send('PUT', '/gateway/insert', { body: { table_name, insert_body } })
const rows = (answer: Answer) => {
  assert.equal(answer.status, 200, answer.text)
  return answer.body.data
}

before(() =>
  withClient(t.clientUrl, (client) =>
    client.query(`
      create type place as (x numeric, label text, at timestamptz);
      create type tour as (name text, stops place[]);
      create domain positive as int check (value > 0);
      create table trip (id int primary key, home place, stops place[], plan tour, codes int[], words text[], grid int[]);
      create table moment (id int primary key, at timestamptz, local timestamp, day date, many timestamptz[], stay tstzrange);
      create table part (id int primary key, moment_id int references moment, at timestamptz, local timestamp, day date);
      create table area (id int primary key, one box, many box[]);
      create table odd (id int primary key, "a""b" text, """" text, "c\\d" text);
      insert into odd values (1, 'one', 'two', 'three');
      do $$ begin execute format('alter database %I set array_nulls = off', current_database()); end $$`),
  ),
)

const HOME = { x: JSON.rawJSON('1.50'), label: 'a,"b" (c)', at: '2026-01-31T00:00:00+00:00' }
const STOPS = [HOME, null, { x: null, label: '', at: '20260-01-31T00:00:00.5+00:00' }]

test('records, arrays of records and nested records can be written back as they were read', async () => {
  const full = {
    id: 1,
    home: HOME,
    stops: STOPS,
    plan: { name: 'n', stops: STOPS },
    codes: [3, null, 1],
    words: ['a', 'NULL', '{"x":1}', ''],
    grid: [[1, 2], [3, 4]], // biome-ignore format: a grid
  }
  rows(await put('trip', full))
  const [left] = JSON.parse((await fetchRows({ table_name: 'trip' })).text, keepNumbers).data
  rows(await put('trip', [{ ...left, id: 2 }, { id: 4 }]))
  rows(await put('trip', { ...left, id: 3 }))
  const { id: _, ...same } = left
  rows(
    await key.post('/gateway/update', {
      table_name: 'trip',
      set: same,
      conditions: [{ column: 'id', value: 4 }],
    }),
  )
  const answer = await fetchRows({ table_name: 'trip', columns: 'home,stops,plan,codes,words,grid' })
  const [first, ...others] = answer.body.data.map((row: unknown) => JSON.stringify(row))
  assert.deepEqual(others, [first, first, first])
  assert.match(answer.text, /"x":1\.50/)
  assert.equal(first, JSON.stringify({ ...JSON.parse(JSON.stringify(full)), id: undefined }))
})

/** Parses a response and keeps the digits of numbers. */
const keepNumbers = (_: string, value: unknown, { source }: { source?: string } = {}) =>
  typeof value === 'number' && source !== undefined ? JSON.rawJSON(source) : value

test('conditions eq, neq and in accept records and arrays, as objects or as database text', async () => {
  rows(
    await put('trip', { id: 9, home: { x: 9, label: 'nine', at: null }, stops: [], codes: [9], grid: [[9]] }),
  )
  const nine = { x: 9, label: 'nine', at: null }
  const found: readonly (readonly [condition: object, ids: readonly number[]])[] = [
    [{ column: 'home', value: nine }, [9]],
    [{ column: 'home', value: '(9,nine,)' }, [9]],
    [{ operator: 'neq', column: 'home', value: HOME }, [9]],
    [{ operator: 'in', column: 'home', value: [nine, HOME, '(9,nine,)', null] }, [1, 2, 3, 4, 9]],
    [{ operator: 'in', column: 'home', value: ['(9,nine,)'] }, [9]],
    [{ operator: 'in', column: 'home', value: [] }, []],
    [{ column: 'stops', value: [] }, [9]],
    [{ column: 'stops', value: STOPS }, [1, 2, 3, 4]],
    [{ operator: 'in', column: 'stops', value: [STOPS, []] }, [1, 2, 3, 4, 9]],
    [{ operator: 'contains', column: 'stops', value: [HOME] }, [1, 2, 3, 4]],
    [{ column: 'codes', value: [9] }, [9]],
    [{ column: 'codes', value: '{9}' }, [9]],
    [{ operator: 'in', column: 'codes', value: [[9], [3, null, 1]] }, [1, 2, 3, 4, 9]],
    [{ operator: 'in', column: 'codes', value: ['{9}', [7]] }, [9]],
    [{ operator: 'in', column: 'grid', value: [[[9]]] }, [9]],
    [{ operator: 'in', column: 'words', value: [['a', 'NULL', '{"x":1}', '']] }, [1, 2, 3, 4]],
    [{ operator: 'or', value: 'home.eq."(9,nine,)",codes.eq.{7}' }, [9]],
    [{ operator: 'or', value: 'codes.in.("{9}","{7}")' }, [9]],
  ]
  for (const [condition, ids] of found) {
    const answer = await fetchRows({ table_name: 'trip', columns: 'id', conditions: [condition] })
    assert.deepEqual(
      rows(answer).map(({ id }: { id: number }) => id),
      ids,
      JSON.stringify(condition),
    )
  }
})

test('several rows and lists have values of a type whose arrays are not separated by commas', async () => {
  const [small, large] = ['(1,1),(0,0)', '(2,2),(0,0)']
  const many = [small, large]
  rows(await put('area', { id: 1, one: small, many }))
  rows(await put('area', [{ id: 2, one: large, many }, { id: 3, many: [] }, { id: 4, one: small }])) // biome-ignore format: rows
  const found = (column: string, operator: string, value: unknown) =>
    fetchRows({ table_name: 'area', columns: 'id', conditions: [{ column, operator, value }] })
  assert.deepEqual(rows(await found('one', 'in', [small, large])), [{ id: 1 }, { id: 2 }, { id: 4 }])
  const [first, second] = rows(await fetchRows({ table_name: 'area', columns: 'many' }))
  assert.deepEqual([first, second], [{ many }, { many }])
})

test('an invalid member of a composite value is rejected with its column', async () => {
  const wrong = { x: 'no number', label: '', at: null }
  for (const body of [{ home: wrong }, { stops: [wrong] }, { plan: { name: '', stops: [wrong] } }]) {
    const [column] = Object.keys(body)
    const written = await put('trip', { id: 50, ...body })
    assert.deepEqual([written.status, written.body.data?.details.column], [422, column], written.text)
  }
  for (const condition of [
    { column: 'home', value: wrong },
    { column: 'stops', operator: 'in', value: [[wrong]] },
    { column: 'codes', operator: 'in', value: [['x']] },
  ]) {
    const response = await fetchRows({ table_name: 'trip', conditions: [condition] })
    assert.deepEqual(
      [response.status, response.body.data?.details.column],
      [422, condition.column],
      response.text,
    )
  }
})

const INSTANTS = [
  '294276-12-31 23:59:59.999999+00',
  '275760-09-13 00:00:00.001+00',
  '10000-01-01 00:00:00+00',
  '9999-12-31 23:59:59.999999+00',
  '0044-03-15 12:00:00+00 BC',
  '4713-01-01 00:00:00+00 BC',
  'infinity',
  '-infinity',
]

test("timestamps outside JavaScript's range keep their digits and can be written back", async () => {
  const bare = (text: string) => text.replace('+00', '')
  const dayOf = (text: string) => text.replace(/ [\d:.]+\+00/, '')
  const written = INSTANTS.map((at, index) => ({
    id: index + 1,
    at,
    local: bare(at),
    day: dayOf(at),
    many: [at, null],
    stay: at.includes('infinity') ? 'empty' : `["${at}",)`,
  }))
  rows(await put('moment', written))
  const left = rows(await fetchRows({ table_name: 'moment' }))
  rows(
    await put(
      'moment',
      left.map((row: { id: number }) => ({ ...row, id: row.id + 100 })),
    ),
  )
  const again = rows(
    await fetchRows({ table_name: 'moment', conditions: [{ operator: 'gt', column: 'id', value: 100 }] }),
  )
  assert.deepEqual(
    again.map((row: { id: number }) => ({ ...row, id: row.id - 100 })),
    left,
  )
  left.forEach(({ at, local, day }: Record<string, string>, index: number) => {
    const digits = (text = '') =>
      text
        .replace(/\+00|Z/, '')
        .match(/\d+/g)
        ?.join(' ')
    const [given] = INSTANTS.slice(index)
    assert.deepEqual(
      [digits(at), digits(local), digits(day)],
      [given, bare(given ?? ''), dayOf(given ?? '')].map(digits),
    )
    assert.equal(at?.endsWith('BC'), given?.endsWith('BC'))
  })
  for (const { id, at } of left) {
    const found = await fetchRows({
      table_name: 'moment',
      columns: 'id',
      conditions: [{ column: 'at', value: at }],
    })
    assert.deepEqual(rows(found), [{ id }, { id: id + 100 }], at)
  }
})

test('timestamps in rows of relations can be written back too', async () => {
  rows(
    await put(
      'part',
      INSTANTS.map((at, index) => ({ id: index + 1, moment_id: 1, at, local: at.replace('+00', '') })),
    ),
  )
  const [{ part }] = rows(await fetchRows({ table_name: 'moment', columns: 'part(*)', limit: 1 }))
  rows(
    await put(
      'part',
      part.map((row: { id: number }) => ({ ...row, id: row.id + 100 })),
    ),
  )
  const all = rows(await fetchRows({ table_name: 'part', columns: 'at,local' }))
  assert.deepEqual(all.slice(INSTANTS.length), all.slice(0, INSTANTS.length))
})

test('columns with a quotation mark or a backslash in their name work in every operation', async () => {
  for (const [name, value] of [
    ['a"b', 'one'],
    ['"', 'two'],
    ['c\\d', 'three'],
  ] as const) {
    // biome-ignore format: pairs
    const twice = `"${name.replaceAll('"', '""').replaceAll('\\', '\\\\')}"`
    const escaped = `"${name.replace(/["\\]/g, '\\$&')}"`
    const bare = name.startsWith('"') ? [] : [name]
    for (const spelled of [twice, escaped, ...bare])
      for (const columns of [spelled, [spelled], `x:${spelled}`, `${spelled} as x`]) {
        const answer = await fetchRows({ table_name: 'odd', columns, conditions: [{ column: name, value }] })
        assert.deepEqual(Object.values(rows(answer)[0] ?? {}), [value], `${columns}`)
      }
    for (const spelled of [twice, escaped, ...bare]) {
      const answer = await fetchRows({
        table_name: 'odd',
        columns: 'id',
        conditions: [{ operator: 'or', value: `${spelled}.eq.${value}` }],
      })
      assert.deepEqual(rows(answer), [{ id: 1 }], spelled)
    }
    const sorted = await fetchRows({ table_name: 'odd', select: { [name]: true }, sort_by: { column: name } })
    assert.deepEqual(rows(sorted), [{ [name]: value }])
    const changed = await key.post('/gateway/update', {
      table_name: 'odd',
      set: { [name]: value },
      conditions: [{ column: name, value }],
    })
    assert.equal(rows(changed)[0][name], value)
    const byAddress = await key.get(`/data?view=odd&eq_column=${encodeURIComponent(name)}&eq_value=${value}`)
    assert.equal(rows(byAddress)[0][name], value)
  }
})

test('null stays null among several rows, also where the database reads it as text in arrays', async () => {
  const inserted = await put('odd', [
    { id: 2, '"': 'NULL' },
    { id: 3, '"': null },
  ])
  assert.deepEqual(
    rows(inserted).map((row: Record<string, unknown>) => row['"']),
    ['NULL', null],
  )
})
