import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import pg from 'pg'
import { type Answer, testService } from '#test/harness.ts'
import { byKey, outputJson, plain, rowJson } from './answers.ts'
import {
  assignments,
  type Change,
  change,
  type Reading,
  reading,
  rowsOf,
  stored,
  table,
} from './any-request.ts'
import {
  changeBody,
  chooser,
  columnsBody,
  inPath,
  lastByKey,
  pageBody,
  rowBody,
  sortBody,
  targetOf,
} from './bodies.ts'
import { columnAt, matches, type Row, sorted, type Table, valueAt } from './model.ts'
import { type Kind, type KindName, kinds, tagged, type Value } from './values.ts'
import { type Choose, filterOf, inQuotes, textOf, written } from './wording.ts'

/** Default limit, lower than the maximum of twelve rows in a table. */
const ROWS = 7
/** `PROPERTY_RUNS=3000` runs more examples. A failure prints the seed for `PROPERTY_SEED`. */
const RUNS = Number(process.env.PROPERTY_RUNS ?? 20)
const seed = process.env.PROPERTY_SEED === undefined ? {} : { seed: Number(process.env.PROPERTY_SEED) }

const t = await testService({ config: { limits: { rows: ROWS } } })
const key = await t.key(['*'])

const example = table.chain((of) =>
  rowsOf(of).chain((rows) => {
    const source = { table: of, rows: rows.map((row) => stored(of, row)) }
    return fc.record({
      table: fc.constant(of),
      rows: fc.constant(rows),
      readings: fc.array(reading(source), { minLength: 4, maxLength: 10 }),
      updates: fc.array(fc.tuple(change(source), assignments(source)), { maxLength: 2 }),
      removal: change(source),
      wording: fc.nat(),
    })
  }),
)

test('reads, counts and writes of random tables agree with a model', async () => {
  await fc.assert(
    fc.asyncProperty(example, async ({ table: of, rows, readings, updates, removal, wording }) => {
      await create(of)
      try {
        let expected = await insert(of, rows, chooser(wording))
        for (const one of readings) await read(of, expected, one)
        for (const [one, set] of updates) expected = await update(of, expected, one, set)
        expected = await remove(of, expected, removal)
        await holds(of, expected)
      } finally {
        await drop(of)
      }
    }),
    { numRuns: RUNS, ...seed },
  )
})

/** Kinds to test with invalid values. Any JSON is valid for jsonb. */
const MISFITS: Partial<Record<KindName, readonly string[]>> = {
  smallint: ['1.5', 'x', '', '32768'],
  integer: ['2147483648', '1e3', ' '],
  bigint: ['9223372036854775808', 'NaN'],
  numeric: ['x', '1e999999', '1,5'],
  double: ['1e400', '0x', '--1'],
  boolean: ['maybe', '2', ''],
  date: ['2026-02-30', '2026-13-01', 'x'],
  timestamp: ['2026-01-01 25:00', '300000-01-01'],
  timestamptz: ['2026-01-01 00:00 Nowhere/City', 'x'],
  uuid: ['x', '00000000-0000-0000-0000-00000000000g'],
  jsonb: ['{', 'x', '{"a":1,}', "'1'"],
  texts: ['x', '{', '{"a}', '{a}}'],
  ints: ['{1,a}', '{1.5}', '[1]'],
}

test('an invalid value is rejected with the name of its column, and nothing is written', async () => {
  const columns = Object.keys(MISFITS).map((kind, at) => ({
    name: `"${at}" '; --`,
    kind: kind as KindName,
    nullable: true,
  }))
  const of: Table = { schema: 'public', name: 'mis"fits', key: 'id', columns }
  await create(of)
  for (const { name, kind } of columns) {
    for (const value of MISFITS[kind] ?? []) {
      const condition = { operator: 'eq', column: name, value }
      const term = { operator: 'or', value: `${inQuotes(name)}.eq.${inQuotes(value)}` }
      const target = { table_name: inPath(of.name) }
      await assertRefusedValue('/gateway/fetch', { ...target, conditions: [condition] }, name)
      await assertRefusedValue('/query/count', { ...target, conditions: [term] }, name)
      await assertRefusedValue(
        '/gateway/update',
        { ...target, set: { [of.key]: 1 }, conditions: [condition] },
        name,
      )
      await assertRefusedValue('/gateway/delete', { ...target, conditions: [term] }, name)
      if (kind !== 'jsonb')
        await assertRefusedValue(
          '/gateway/insert',
          { ...target, insert_body: { id: 1, [name]: value } },
          name,
        )
    }
  }
  await holds(of, [])
})

async function assertRefusedValue(path: string, body: object, column: string): Promise<void> {
  const answer = await send('POST', path, body)
  assert.deepEqual(
    [answer.status, answer.body.code, answer.body.data.details.column],
    [422, 'invalid_value', column],
    `${answer.text} to ${JSON.stringify(body)}`,
  )
}

// Tables, created through the gateway, so that its catalogue is up to date

const id = pg.escapeIdentifier
const nameOf = ({ schema, name }: Table) => `${id(schema)}.${id(name)}`

function create(of: Table): Promise<void> {
  const columns = of.columns.map(
    ({ name, kind, nullable }) => `${id(name)} ${kinds[kind].sql}${nullable ? '' : ' not null'}`,
  )
  return runSql(
    `create schema if not exists ${id(of.schema)};
     create table ${nameOf(of)} (${[`${id(of.key)} integer primary key`, ...columns].join(', ')})`,
  )
}

const drop = (of: Table) => runSql(`drop table ${nameOf(of)}`)

async function runSql(query: string): Promise<void> {
  const answer = await key.post('/query/sql', { driver: 'postgresql', query })
  assert.equal(answer.status, 200, answer.text)
}

// Requests

const send = (method: string, path: string, body: unknown, headers = {}) =>
  key.send(method, path, { raw: JSON.stringify(body), headers })

function told(
  answer: Answer,
  request: unknown,
): { data: Record<string, unknown>[] } & Record<string, unknown> {
  assert.equal(answer.status, 200, `${answer.text} to ${JSON.stringify(request)}`)
  return tagged(answer.text) as ReturnType<typeof told>
}

/** One single insert and one bulk insert, which are different code paths. */
async function insert(of: Table, rows: readonly Row[], choose: Choose): Promise<Row[]> {
  const expected = rows.map((row) => stored(of, row))
  for (const [from, to] of [
    [0, 1],
    [1, rows.length],
  ] as const) {
    const given = rows.slice(from, to)
    if (given.length === 0) continue
    const body = { ...targetOf(of, choose), insert_body: given.map((row) => rowBody(of, row, choose)) }
    const { data, affected_rows } = told(await send('PUT', '/gateway/insert', body), body)
    assert.deepEqual(
      plain(of, data),
      expected.slice(from, to).map((row) => rowJson(of, row)),
      JSON.stringify(body),
    )
    assert.equal(affected_rows, `#${given.length}`)
  }
  return expected
}

async function read(of: Table, rows: readonly Row[], asked: Reading): Promise<void> {
  const choose = chooser(asked.wording)
  // The body takes precedence over the header, which contradicts it here.
  const inBody = choose(2) === 0
  const filter = filterOf(of, asked.condition, choose)
  const fitting = rows.filter((row) => matches(of, row, asked.condition))
  const { limit, offset, open } = rangeOf(asked.page)
  const sort = [...asked.sort, { column: -1, descending: false }]
  const cut = sorted(of, fitting, sort).slice(offset, offset + limit)

  const body = {
    ...targetOf(of, choose),
    ...filter,
    ...pageBody(asked.page),
    ...sortBody(of, sort, choose),
    ...(asked.output && { columns: columnsBody(of, asked.output, choose) }),
    ...(asked.count && { count: 'exact' }),
    ...(inBody && { strip_nulls: asked.stripNulls }),
  }
  const path = ['/gateway/fetch', '/gateway/data'][choose(2)] ?? ''
  const headers = { 'x-strip-nulls': String(inBody !== asked.stripNulls) }
  const answer = told(await send('POST', path, body, headers), body)
  const expected = cut.map((row) => outputJson(of, row, asked))
  assert.deepEqual(plain(of, answer.data, asked), expected, JSON.stringify(body))
  assert.equal(answer.count, asked.count ? `#${fitting.length}` : undefined)
  assert.equal(
    answer.has_more,
    open && fitting.length > offset + limit ? true : undefined,
    JSON.stringify(body),
  )

  const counting = { ...targetOf(of, choose), ...filter }
  assert.equal(told(await send('POST', '/query/count', counting), counting).count, `#${fitting.length}`)
  await readByQuery(of, rows, asked, choose)
}

/** `GET /data`: one column, one value. */
async function readByQuery(of: Table, rows: readonly Row[], asked: Reading, choose: Choose): Promise<void> {
  const at = choose(of.columns.length + 1) - 1
  const { name, kind } = columnAt(of, at)
  const value = valueAt(rows[choose(rows.length || 1)] ?? { key: 1, values: [] }, at)
  if (value === null) return
  const query = new URLSearchParams({
    view: `${inPath(of.schema)}.${inPath(of.name)}`,
    eq_column: name,
    eq_value: textOf(kind, value, choose),
    sort_by: of.key,
    sort_direction: 'descending',
    limit: '100',
    strip_nulls: String(asked.stripNulls),
  })
  const fitting = rows.filter((row) => {
    const own = valueAt(row, at)
    return own !== null && (kinds[kind] as Kind).equal(own, value)
  })
  const { data } = told(await key.get(`/data?${query}`), String(query))
  const expected = fitting
    .toReversed()
    .map((row) => outputJson(of, row, { output: undefined, stripNulls: asked.stripNulls }))
  assert.deepEqual(plain(of, data), expected, String(query))
}

/** Limit and offset take precedence over pages. Without both, the default limit applies. */
function rangeOf({ limit, offset, size, current }: Reading['page']) {
  const most = limit ?? size ?? ROWS
  const before = current === undefined ? 0 : Math.max(0, current - 1) * (size ?? most)
  return { limit: most, offset: offset ?? before, open: limit === undefined && size === undefined }
}

async function update(
  of: Table,
  rows: readonly Row[],
  asked: Change,
  set: [number, Value | null][],
): Promise<Row[]> {
  const choose = chooser(asked.wording)
  const chosen = chosenBy(of, rows, asked)
  const isChosen = new Set(chosen.map((row) => row.key))
  const changed = (row: Row): Row =>
    stored(of, {
      ...row,
      values: row.values.map(
        (value, at) =>
          set.find(([place]) => place === at)?.[1] ?? (set.some(([place]) => place === at) ? null : value),
      ),
    })
  const member = ['update_body', 'set', 'data'][choose(3)] ?? 'set'
  const values = set.map(
    ([at, value]) => [columnAt(of, at).name, written(columnAt(of, at).kind, value, choose)] as const,
  )
  const body = {
    ...changeBody(of, asked, choose),
    ...(choose(4) === 0
      ? { columns: values.map(([column, value]) => ({ column, value })) }
      : { [member]: Object.fromEntries(values) }),
  }
  const after = rows.map((row) => (isChosen.has(row.key) ? changed(row) : row))
  await writes(
    of,
    '/gateway/update',
    'POST',
    body,
    after.filter((row) => isChosen.has(row.key)),
  )
  await holds(of, after)
  return after
}

async function remove(of: Table, rows: readonly Row[], asked: Change): Promise<Row[]> {
  const choose = chooser(asked.wording)
  const chosen = chosenBy(of, rows, asked)
  await writes(
    of,
    '/gateway/delete',
    ['DELETE', 'POST'][choose(2)] ?? 'POST',
    changeBody(of, asked, choose),
    chosen,
  )
  return rows.filter((row) => !chosen.includes(row))
}

function chosenBy(
  of: Table,
  rows: readonly Row[],
  { condition, sort, limit = rows.length, offset }: Change,
): Row[] {
  const fitting = rows.filter((row) => matches(of, row, condition))
  return sorted(of, fitting, lastByKey(sort)).slice(offset, offset + limit)
}

/** Compares the rows that a write returns, in any order. */
async function writes(
  of: Table,
  path: string,
  method: string,
  body: unknown,
  expected: readonly Row[],
): Promise<void> {
  const { data, affected_rows } = told(await send(method, path, body), body)
  assert.deepEqual(
    byKey(of, plain(of, data)),
    byKey(
      of,
      expected.map((row) => rowJson(of, row)),
    ),
    JSON.stringify(body),
  )
  assert.equal(affected_rows, `#${expected.length}`)
}

/** Asserts that the table has exactly the rows of the model. */
async function holds(of: Table, rows: readonly Row[]): Promise<void> {
  const body = { table_name: inPath(of.name), schema_name: of.schema, limit: 100 }
  const { data } = told(await send('POST', '/gateway/fetch', body), body)
  assert.deepEqual(
    byKey(of, plain(of, data)),
    byKey(
      of,
      rows.map((row) => rowJson(of, row)),
    ),
  )
}
