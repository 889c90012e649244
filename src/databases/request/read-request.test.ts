import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Body, snakeCased } from '#databases/request/fields.ts'
import { readCount, readDelete, readFetch, readInsert, readUpdate } from '#databases/request/read-request.ts'
import { readTable } from '#databases/request/table-name.ts'
import { Failure } from '#kernel/errors.ts'
import { ORDINARY_LIMITS } from '#test/drivers/calls.ts'

const limits = ORDINARY_LIMITS
const fetch = (body: Body) => readFetch({ table_name: 'books', ...body }, { limits })
const eq = (column: string, value: unknown) => ({ kind: 'compare', column, operator: 'eq', value })

test('the table may be named by several fields, which must not contradict each other', () => {
  for (const field of ['table', 'table_name', 'view_name'])
    assert.deepEqual(readTable({ [field]: 'books' }), { schema: 'public', table: 'books' })
  assert.deepEqual(readTable({ table: 'shop.books' }), { schema: 'shop', table: 'books' })
  assert.deepEqual(readTable({ table: 'books', schema_name: 'shop' }), { schema: 'shop', table: 'books' })
  assert.deepEqual(readTable({ table: '"a.b".c' }), { schema: 'a.b', table: 'c' })
  assert.deepEqual(readTable({ table: '"a"b' }), { schema: 'public', table: '"a"b' })
  assert.throws(() => readTable({ table: 'a', table_name: 'b' }), { code: 'missing_table' })
  assert.throws(() => readTable({ table: 'a.b', schema_name: 'c' }), { code: 'invalid_identifier' })
  assert.throws(() => readTable({}), { code: 'missing_table', status: 400 })
  for (const table of ['.a', 'a.', 'a.b.c', '.'])
    assert.throws(() => readTable({ table }), { code: 'invalid_identifier' }, table)
})

test('a condition is given in long form, short form, or both when they agree', () => {
  const long = { operator: 'eq', column: 'a', value: 1 }
  const short = { eq_column: 'a', eq_value: 1 }
  for (const condition of [long, short, { ...long, ...short }, { column: 'a', value: 1 }])
    assert.deepEqual(fetch({ conditions: [condition] }).where, eq('a', 1))
  assert.throws(() => fetch({ conditions: [{ ...long, eq_column: 'b', eq_value: 1 }] }), {
    code: 'invalid_condition',
  })
  assert.throws(() => fetch({ conditions: [{ ...short, operator: 'gt' }] }), { code: 'invalid_condition' })
})

test('an unknown member of a condition is refused, so that no typing error widens a write', () => {
  assert.throws(() => fetch({ conditions: [{ column: 'a', op: 'neq', value: 1 }] }), {
    code: 'invalid_condition',
    hint: 'op is not a member of a condition. It has operator, column and value, or eq_column and eq_value.',
  })
  assert.throws(() => fetch({ conditions: [{ column: 'a' }] }), { code: 'invalid_condition' })
  assert.throws(() => fetch({ conditions: [{ column: 'a', operator: '=', value: 1 }] }), {
    code: 'invalid_condition',
    hint: /^operator is one of eq, neq, gt, /,
  })
  assert.throws(() => fetch({ conditions: [{ operator: 'or', value: [] }] }), { code: 'invalid_condition' })
})

test('or and not take terms as text, a list of terms, or a column with a predicate', () => {
  const either = { kind: 'any', terms: [eq('a', '1'), eq('b', '2')] }
  assert.deepEqual(fetch({ conditions: [{ operator: 'or', value: 'a.eq.1,b.eq.2' }] }).where, either)
  assert.deepEqual(fetch({ conditions: [{ operator: 'or', value: ['a.eq.1', 'b.eq.2'] }] }).where, either)
  assert.deepEqual(fetch({ conditions: [{ operator: 'not', value: 'a.eq.1' }] }).where, {
    kind: 'not',
    term: eq('a', '1'),
  })
  assert.deepEqual(fetch({ conditions: [{ operator: 'not', column: 'a', value: 'eq.1' }] }).where, {
    kind: 'not',
    term: eq('a', '1'),
  })
})

test('an on_conflict that names no columns is refused with the forms that do', () => {
  for (const on_conflict of [{ columns: ['a'] }, [], [1], true])
    assert.throws(() => readInsert({ table: 'a', insert_body: { a: 1 }, on_conflict }, { limits }), {
      code: 'invalid_conflict_target',
      hint: 'on_conflict is the names of the columns: "tenant,email" or ["tenant", "email"].',
    })
})

test('structured requests compile to the same request', () => {
  const structured = fetch({
    select: { id: true, name: 'title', author: { select: { name: true } } },
    where: { id: [1, 2], age: { gte: 18, not: { eq: 20 } }, or: [{ a: 1 }, { b: null }] },
    where_filters: [{ column: 'c', operator: 'like', value: 'x%' }],
    orderBy: [{ column: 'id', direction: 'desc' }],
  })
  const plain = fetch({
    columns: 'id:id,name:title,author:author(name:name)',
    conditions: [
      { column: 'id', operator: 'in', value: [1, 2] },
      { column: 'age', operator: 'gte', value: 18 },
      { not: { column: 'age', value: 20 } },
      {
        or: [
          { column: 'a', value: 1 },
          { column: 'b', value: null },
        ],
      },
      { column: 'c', operator: 'like', value: 'x%' },
    ],
    sort_by: { field: 'id', direction: 'desc' },
  })
  assert.deepEqual(structured, plain)
  const bad = { code: 'invalid_structured_select_request' }
  assert.throws(() => fetch({ select: { a: 1 } }), bad)
  assert.throws(() => fetch({ select: { a: true }, columns: 'a' }), bad)
  assert.throws(() => fetch({ where: { a: { almost: 1 } } }), bad)
  assert.throws(() => fetch({ where: { or: [] } }), bad)
  assert.throws(() => fetch({ orderBy: { column: 'a', direction: 'up' } }), bad)
})

test('limit and offset take precedence over pages, and a limit above the maximum is refused', () => {
  assert.deepEqual(fetch({}).page, { limit: 1_000, offset: 0, open: true })
  assert.deepEqual(fetch({ current_page: 3, page_size: 20 }).page, { limit: 20, offset: 40, open: false })
  assert.deepEqual(fetch({ current_page: 3, page_size: 20, limit: 5, offset: 7 }).page, {
    limit: 5,
    offset: 7,
    open: false,
  })
  assert.throws(() => fetch({ limit: 10_001 }), { code: 'limit_too_large', status: 400 })
  for (const limit of [-1, 1.5, 'x', {}, Number.NaN])
    assert.throws(() => fetch({ limit }), { code: 'invalid_limit' })
})

test('more conditions than allowed are refused, in every field that takes them', () => {
  const terms = Array.from({ length: 60 }, (_, index) => `a.eq.${index}`).join(',')
  assert.throws(
    () =>
      fetch({
        conditions: [
          { operator: 'or', value: terms },
          { operator: 'or', value: terms },
        ],
      }),
    {
      code: 'too_many_conditions',
    },
  )
})

test('a write without a condition is refused unless allow_unbounded is set', () => {
  const body = { table: 'books', set: { a: 1 } }
  for (const extra of [{}, { conditions: [] }, { where: {} }, { limit: 1 }, { allow_unbounded: 'true' }])
    assert.throws(() => readUpdate({ ...body, ...extra }, { limits }), {
      code: 'unbounded_write',
      status: 400,
    })
  assert.throws(() => readDelete({ table: 'books' }, { limits }), { code: 'unbounded_write' })
  assert.equal(readUpdate({ ...body, allow_unbounded: true }, { limits }).where, undefined)
  assert.equal(readDelete({ table: 'books', resource_id: 5 }, { limits }).resource, 5)
})

test('an update takes its values from one of four fields', () => {
  const conditions = [{ column: 'id', value: 1 }]
  for (const values of [
    { update_body: { a: 1 } },
    { set: { a: 1 } },
    { data: { a: 1 } },
    { columns: [{ column: 'a', value: 1 }] },
  ])
    assert.deepEqual(readUpdate({ table: 'books', conditions, ...values }, { limits }).set, { a: 1 })
  const listed = readUpdate({ table: 'books', conditions, set: { a: 1 }, columns: ['b'] }, { limits })
  assert.deepEqual(listed.columns, [{ kind: 'column', name: 'b' }])
  assert.throws(() => readUpdate({ table: 'books', conditions, set: {}, data: { a: 1 } }, { limits }), {
    code: 'invalid_write',
  })
  assert.throws(() => readUpdate({ table: 'books', conditions, set: {} }, { limits }), {
    code: 'empty_write',
  })
})

test('with the setting on, camel case becomes snake case wherever a column is named', () => {
  const request = readFetch(
    {
      table: 'books',
      columns: ['userId', 'a:postTitle'],
      conditions: [
        { eq_column: 'userId', eq_value: 1 },
        { operator: 'or', value: 'userId.eq.1' },
      ],
      sort_by: { field: 'createdAt' },
    },
    { limits, snakeCase: true },
  )
  assert.deepEqual(request.columns, [
    { kind: 'column', name: 'user_id' },
    { kind: 'column', name: 'post_title', alias: 'a' },
  ])
  assert.deepEqual(request.sort, [{ column: 'created_at', descending: false }])
  assert.ok(!JSON.stringify(request).includes('userId'))
  assert.deepEqual(
    readInsert({ table: 'b', insert_body: { userId: { keptKey: 1 } } }, { limits, snakeCase: true }).rows,
    [{ user_id: { keptKey: 1 } }],
  )
  assert.equal(snakeCased('HTTPStatusCode2'), 'http_status_code2')
})

test('any body is read or refused with a 4xx', () => {
  const field = fc.constantFrom(
    'table',
    'table_name',
    'schema_name',
    'columns',
    'select',
    'conditions',
    'where',
    'where_filters',
    'sort_by',
    'orderBy',
    'limit',
    'offset',
    'current_page',
    'page_size',
    'count',
    'head',
    'strip_nulls',
    'insert_body',
    'on_conflict',
    'update_body',
    'set',
    'resource_id',
  )
  const leaf = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.constantFrom('a.eq.1', 'eq', 'or', '*', 'a(b)', 'desc'),
    fc.boolean(),
    fc.constant(null),
  )
  const key = fc.oneof(
    fc.string(),
    fc.constantFrom(
      'column',
      'operator',
      'value',
      'eq_column',
      'or',
      'not',
      'and',
      'field',
      'direction',
      'select',
      '__proto__',
      'constructor',
    ),
  )
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      leaf,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    ),
  }))
  fc.assert(
    fc.property(fc.dictionary(field, value), fc.boolean(), (fields, named) => {
      const body = named ? { ...fields, table: 't', table_name: 't' } : fields
      for (const read of [readFetch, readCount, readInsert, readUpdate, readDelete]) {
        try {
          read(body, { limits })
        } catch (error) {
          assert.ok(error instanceof Failure, String(error))
          assert.ok(error.status >= 400 && error.status < 500)
        }
      }
    }),
    { numRuns: 1_000 },
  )
})
