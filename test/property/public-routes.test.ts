import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import pg from 'pg'
import { type Answer, actor, testService } from '#test/harness.ts'
import { condition, type Source } from './any-condition.ts'
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
import { chooser, columnsBody, inPath, lastByKey, pageBody, rowBody, sortBody } from './bodies.ts'
import { type Condition, columnAt, matches, type Row, type Table } from './model.ts'
import { kinds, tagged, type Value } from './values.ts'
import { filterOf, written } from './wording.ts'

/** `PROPERTY_RUNS=1000` runs more examples. A failure prints the seed for `PROPERTY_SEED`. */
const RUNS = Number(process.env.PROPERTY_RUNS ?? 4)
const seed = process.env.PROPERTY_SEED === undefined ? {} : { seed: Number(process.env.PROPERTY_SEED) }

const t = await testService()
const key = await t.key(['*'])
const stranger = actor(t.url, {})
const client = new pg.Client({ connectionString: t.clientUrl })
await client.connect()
await client.query(`create type trap as (value int);
  create function spring(one trap, other trap) returns boolean language plpgsql immutable strict cost 0.00001
    as $$ begin raise exception 'outside' using errcode = 'invalid_text_representation'; end $$;
  create operator = (leftarg = trap, rightarg = trap, function = spring, restrict = eqsel)`)
after(() => client.end())

/** In a column that no route opens. */
const CANARY = 'canary-6f1d'
const HIDDEN = 'hidden canary'
/** A route must answer as this table, which has only its rows and columns. */
const TWIN = 'twin of a route'

/** A column of every route. Its operator fails on every value, and only rows outside of the route have one. */
const TRAP = 'trap of a route'

const example = fc
  .tuple(table, fc.nat(255))
  .map(([of, mask]) => ({
    of,
    bound: { ...of, columns: of.columns.filter((_, at) => at === 0 || (mask >> at) % 2 === 1) },
  }))
  .chain(({ of, bound }) => rowsOf(of).map((rows) => ({ of, bound, rows })))
  .chain(({ of, bound, rows }) => {
    const source = { table: of, rows: rows.map((row) => stored(of, row)) }
    const shown: Source = { table: bound, rows: source.rows.map((row) => seenThrough(of, bound, row)) }
    return fc.record({
      of: fc.constant(of),
      bound: fc.constant(bound),
      rows: fc.constant(rows),
      // Half of them on columns that a body can change.
      fixed: fc.oneof(
        condition(source).map((asked) => ({ on: of, asked })),
        condition(shown).map((asked) => ({ on: bound, asked })),
      ),
      readings: fc.array(reading(shown), { minLength: 3, maxLength: 5 }),
      beyond: fc.array(reading(source), { minLength: 2, maxLength: 4 }),
      updates: fc.array(fc.tuple(change(shown), assignments(shown)), { minLength: 2, maxLength: 4 }),
      updateBeyond: fc.tuple(change(source), assignments(source)),
      added: rowsOf(bound),
      removal: change(shown),
      removalBeyond: change(source),
    })
  })

const seenThrough = (of: Table, bound: Table, row: Row): Row => ({
  key: row.key,
  values: bound.columns.map(
    ({ name }) => row.values[of.columns.findIndex((one) => one.name === name)] ?? null,
  ),
})

let succeeded = 0

test('whatever a body says, a public route reads and writes only what its record fixes', async () => {
  await fc.assert(
    fc.asyncProperty(example, async (one) => {
      const { of, bound, rows, fixed } = one
      await create(of, bound, rows)
      try {
        const isOpen = (row: Row) => {
          const whole = stored(of, row)
          return matches(fixed.on, fixed.on === of ? whole : seenThrough(of, bound, whole), fixed.asked)
        }
        const keys = rows.filter(isOpen).map((row) => row.key)
        const fixedBody = filterOf(fixed.on, fixed.asked, () => 1)
        const call = await openRoute(of, bound, fixedBody)
        await makeTwin(of, bound, keys)
        await setTraps(of, keys)

        for (const asked of one.readings)
          await sameAsTwin(call, 'fetch', withTrap(of, readBody(bound, withoutCasts(asked))))
        for (const asked of one.beyond) await sameAsTwin(call, 'fetch', withTrap(of, readBody(of, asked)))
        for (const [asked, set] of one.updates)
          await writesAsTwin(of, bound, fixedBody, call, 'update', updateBody(bound, asked, set))
        const [beyond, set] = one.updateBeyond
        await writesAsTwin(of, bound, fixedBody, call, 'update', updateBody(of, beyond, set))
        await writesAsTwin(of, bound, fixedBody, call, 'delete', chosenBody(bound, one.removal))
        await writesAsTwin(of, bound, fixedBody, call, 'delete', chosenBody(of, one.removalBeyond))
        await insertsWithin(of, bound, fixedBody, call, one.added)
      } finally {
        await runSql(`drop table if exists ${nameOf(of)}, public.${id(TWIN)}`)
      }
    }),
    { numRuns: RUNS, ...seed },
  )
  // Otherwise the bodies would say nothing about what is answered.
  assert.ok(succeeded > RUNS, `${succeeded} calls in ${RUNS} examples were answered with 200`)
})

type Call = (op: string, body: Record<string, unknown>) => Promise<Answer>

const id = pg.escapeIdentifier
const nameOf = ({ schema, name }: Table) => `${id(schema)}.${id(name)}`
const namesOf = ({ key: own, columns }: Table) => [own, ...columns.map(({ name }) => name)].map(id).join(', ')

async function create(of: Table, bound: Table, rows: readonly Row[]): Promise<void> {
  const columns = of.columns.map(
    ({ name, kind, nullable }) =>
      // A column that the route does not open has no value in its inserts.
      `${id(name)} ${kinds[kind].sql}${nullable || !bound.columns.some((one) => one.name === name) ? '' : ' not null'}`,
  )
  await runSql(`create schema if not exists ${id(of.schema)};
    create table ${nameOf(of)} (${[`${id(of.key)} integer primary key`, ...columns].join(', ')}, ${id(HIDDEN)} text default '${CANARY}', ${id(TRAP)} trap)`)
  if (rows.length === 0) return
  const body = { table_name: pathOf(of), insert_body: rows.map((row) => rowBody(of, row, chooser(row.key))) }
  const answer = await key.send('PUT', '/gateway/insert', { raw: JSON.stringify(body) })
  assert.equal(answer.status, 200, answer.text)
}

const pathOf = ({ schema, name }: Table) => `${inPath(schema)}.${inPath(name)}`

async function makeTwin(of: Table, bound: Table, keys: readonly number[]): Promise<void> {
  const rows = `select ${namesOf(bound)} from ${nameOf(of)} where ${id(of.key)} = any ('{${keys.join(',')}}')`
  const notNull = bound.columns.filter(({ nullable }) => !nullable)
  await runSql(`create table public.${id(TWIN)} as ${rows}; alter table public.${id(TWIN)} add primary key (${id(of.key)})
    , add ${id(TRAP)} trap ${notNull.map(({ name }) => `, alter ${id(name)} set not null`).join('')}`)
}

/** With statistics, on which the planner tries operators. */
async function setTraps(of: Table, keys: readonly number[]): Promise<void> {
  await client.query(`update ${nameOf(of)} set ${id(TRAP)} = '(1)' where ${id(of.key)} <> all ($1)`, [keys])
  await client.query(`analyze ${nameOf(of)}`)
}

let routes = 0
async function openRoute(of: Table, bound: Table, fixed: Record<string, unknown>): Promise<Call> {
  const route_key = `route-${++routes}`
  const body = {
    route_key,
    client_name: 'default',
    allowed_ops: ['fetch', 'insert', 'update', 'delete'],
    requires_key: false,
    table_name: pathOf(of),
    columns: [of.key, ...bound.columns.map(({ name }) => name), TRAP],
    rate_limit: { requests: 1_000, window_seconds: 1_000 },
    ...fixed,
  }
  const answer = await t.admin.send('POST', '/admin/public-routes', { raw: JSON.stringify(body) })
  assert.equal(answer.status, 201, answer.text)
  return (op, body) => stranger.send('POST', `/public/${route_key}/${op}`, { raw: JSON.stringify(body) })
}

// Bodies

function readBody(of: Table, { condition: asked, sort, output, page, count, stripNulls, wording }: Reading) {
  const choose = chooser(wording)
  return {
    ...filterOf(of, asked, choose),
    ...pageBody(page),
    ...sortBody(of, lastByKey(sort), choose),
    ...(output && { columns: columnsBody(of, output, choose) }),
    ...(count && { count: ['exact', 'planned', 'estimated'][choose(3)] }),
    strip_nulls: stripNulls,
  }
}

function chosenBody(of: Table, { condition: asked, sort, limit, offset, wording }: Change) {
  const choose = chooser(wording)
  return {
    ...filterOf(of, withoutCast(asked), choose),
    ...sortBody(of, lastByKey(sort), choose),
    ...(limit !== undefined && { limit }),
    ...(offset > 0 && { offset }),
  }
}

const updateBody = (of: Table, asked: Change, set: readonly [number, Value | null][]) => ({
  ...chosenBody(of, asked),
  set: Object.fromEntries(
    set.map(([at, value]) => [
      columnAt(of, at).name,
      written(columnAt(of, at).kind, value, chooser(asked.wording)),
    ]),
  ),
})

const withoutCasts = (asked: Reading): Reading => ({
  ...asked,
  condition: asked.condition && withoutCast(asked.condition),
  output: asked.output?.map((item) => ({ ...item, asText: false })),
})

/** A public route refuses casts. */
function withoutCast(asked: Condition): Condition {
  if (asked.kind === 'not') return { ...asked, term: withoutCast(asked.term) }
  if (asked.kind !== 'compare') return { ...asked, terms: asked.terms.map(withoutCast) }
  const { columnCast: _column, valueCast: _value, ...rest } = asked
  return rest
}

/** A condition that holds for every row, and fails on a row with a trap. */
function withTrap(of: Table, body: Record<string, unknown>): Record<string, unknown> {
  const always = { column: of.key, operator: 'gte', value: -1_000_000 }
  const trapped = { or: [{ column: TRAP, value: '(1)' }, always] }
  return { ...body, conditions: [...[body.conditions ?? []].flat(), trapped] }
}

// Comparisons

/** A success of the route is one of the twin, with the same rows. Nothing that is hidden is in any answer. */
async function sameAsTwin(
  call: Call,
  op: 'fetch' | 'update' | 'delete',
  body: Record<string, unknown>,
): Promise<Answer> {
  const answer = await call(op, body)
  assert.ok(!answer.text.includes(CANARY), answer.text)
  assert.ok(answer.status === 200 || (answer.status >= 400 && answer.status < 500), answer.text)
  // Otherwise a row outside of the route was looked at.
  assert.ok(answer.status === 200 || !answer.text.includes(TRAP), answer.text)
  if (answer.status !== 200) return answer
  succeeded++
  // The twin has other statistics, and its route counts exactly.
  const raw = JSON.stringify({
    ...body,
    ...(body.count !== undefined && { count: 'exact' }),
    table_name: inPath(TWIN),
  })
  const twin = await key.send('POST', `/gateway/${op}`, { raw })
  const context = `${op} ${JSON.stringify(body)}: ${answer.text} and ${twin.text}`
  assert.equal(twin.status, 200, context)
  const facts = (text: string) => {
    const { cache_key: _, ...rest } = tagged(text) as Record<string, unknown>
    return rest
  }
  assert.deepEqual(facts(answer.text), facts(twin.text), context)
  return answer
}

/** After a success, the route's part of the table equals the twin, and the rest is as before. After a refusal everything is. */
async function writesAsTwin(
  of: Table,
  bound: Table,
  fixed: Record<string, unknown>,
  call: Call,
  op: 'update' | 'delete',
  body: Record<string, unknown>,
): Promise<void> {
  const before = await rowsIn(of)
  const open = await keysWithin(of, fixed)
  const { status, text } = await sameAsTwin(call, op, withTrap(of, body))
  const after = await rowsIn(of)
  const context = `${op} ${JSON.stringify(body)}: ${text}`
  if (status !== 200) assert.deepEqual(after, before, context)
  const twin = await keysInTwin(of)
  const outside = (rows: readonly TableRow[]) => rows.filter((row) => !open.includes(keyOf(of, row)))
  assert.deepEqual(outside(after), outside(before), context)
  const hidden = (rows: readonly TableRow[]) =>
    rows
      .filter((row) => twin.includes(keyOf(of, row)))
      .map((row) => withoutColumns(row, [of.key, ...bound.columns.map(({ name }) => name)]))
  if (op === 'update') assert.deepEqual(hidden(after).length, hidden(before).length, context)
  assert.deepEqual(hidden(after), hidden(before.filter((row) => twin.includes(keyOf(of, row)))), context)
  assert.deepEqual((await keysWithin(of, fixed)).toSorted(byNumber), twin.toSorted(byNumber), context)
}

async function insertsWithin(
  of: Table,
  bound: Table,
  fixed: Record<string, unknown>,
  call: Call,
  added: readonly Row[],
): Promise<void> {
  const before = await rowsIn(of)
  for (const insert_body of [
    ...added.slice(0, 3).map((row) => rowBody(bound, { ...row, key: 100 + row.key }, chooser(row.key))),
    added.slice(3).map((row) => rowBody(bound, { ...row, key: 100 + row.key }, chooser(row.key))),
  ]) {
    const answer = await call('insert', { insert_body })
    assert.ok(!answer.text.includes(CANARY), answer.text)
    assert.ok(answer.status === 200 || (answer.status >= 400 && answer.status < 500), answer.text)
    if (answer.status === 200) succeeded++
    const given = [insert_body].flat().map((row) => row[of.key])
    const within = await keysWithin(of, fixed)
    const all = (await rowsIn(of)).map((row) => keyOf(of, row))
    for (const one of given)
      assert.deepEqual(
        [all.includes(one as number), within.includes(one as number)],
        answer.status === 200 ? [true, true] : [false, false],
        answer.text,
      )
  }
  const after = await rowsIn(of)
  assert.deepEqual(
    after.filter((row) => keyOf(of, row) <= 100),
    before,
  )
}

// The table itself

type TableRow = Readonly<Record<string, unknown>>
const keyOf = (of: Table, row: TableRow): number => Number(row[of.key])
const byNumber = (one: number, other: number) => one - other
const withoutColumns = (row: TableRow, names: readonly string[]) =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name)))

/** Every row with every column as text. */
async function rowsIn(of: Table): Promise<TableRow[]> {
  const columns = [of.key, ...of.columns.map(({ name }) => name), HIDDEN].map((name) => `${id(name)}::text`)
  const { rows } = await client.query(
    `select ${columns.join(', ')} from ${nameOf(of)} order by ${id(of.key)}`,
  )
  return rows
}

async function keysInTwin(of: Table): Promise<number[]> {
  const answer = await key.post('/gateway/fetch', { table_name: inPath(TWIN), limit: 1_000 })
  return answer.body.data.map((row: TableRow) => keyOf(of, row))
}

async function keysWithin(of: Table, fixed: Record<string, unknown>): Promise<number[]> {
  const body = { table_name: pathOf(of), ...fixed, limit: 1_000 }
  const answer = await key.send('POST', '/gateway/fetch', { raw: JSON.stringify(body) })
  assert.equal(answer.status, 200, answer.text)
  return answer.body.data.map((row: TableRow) => keyOf(of, row))
}

async function runSql(query: string): Promise<void> {
  const answer = await key.post('/query/sql', { driver: 'postgresql', query })
  assert.equal(answer.status, 200, answer.text)
}
