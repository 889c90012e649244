import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import fc from 'fast-check'
import { loadModule, parseSync } from 'libpg-query'
import { buildCatalogue, type CatalogueRow } from '#databases/drivers/postgres/catalogue/catalogue.ts'
import { insertSql } from '#databases/drivers/postgres/sql/insert.ts'
import type { BuiltSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { countSql, deleteSql, selectSql, updateSql } from '#databases/drivers/postgres/sql/statements.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { resolve } from '#databases/plan/resolve.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import type { Body } from '#databases/request/fields.ts'
import {
  type RequestOptions,
  readDelete,
  readFetch,
  readInsert,
  readUpdate,
} from '#databases/request/read-request.ts'
import type { DataRequest, Json } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'
import { ORDINARY_LIMITS } from '#test/drivers/calls.ts'
import { ANY_CHARACTER } from '#test/property/any-character.ts'

const options: RequestOptions = {
  limits: ORDINARY_LIMITS,
}

before(loadModule)

const column = (
  name: string,
  type: string,
  category: string,
  base: string,
): CatalogueRow['columns'][number] => [
  '1',
  name,
  type,
  type,
  category,
  base,
  true,
  false,
  '',
  name === 'id' ? "nextval('s'::regclass)" : null,
]

const catalogueOf = (schema: string, table: string, names: readonly string[]) =>
  buildCatalogue({
    tables: [['1', schema, table, 'r', 0, true, true, false, false, false, false]],
    columns: names.map((name) => column(name, 'text', 'S', 'text')),
    constraints: [['1', 'pk', 'p', '', [names[0] ?? ''], '0', null]],
  })

const books = buildCatalogue({
  tables: [['1', 'public', 'books', 'r', 0, true, true, false, false, false, false]],
  columns: [
    column('id', 'bigint', 'N', 'int8'),
    column('title', 'text', 'S', 'text'),
    column('tags', 'text[]', 'A', '_text'),
    column('meta', 'jsonb', 'U', 'jsonb'),
  ],
  constraints: [['1', 'pk', 'p', '', ['id'], '0', null]],
})

function build(body: Body, catalogue = books): BuiltSql[] {
  const plans = [readFetch, readInsert, readUpdate, readDelete].map((read) =>
    resolve(catalogue, read(body, options), EVERY_RIGHT),
  )
  return plans.map((plan) => {
    if (plan.kind === 'read') return selectSql(plan)
    if (plan.kind === 'insert') return insertSql(plan)
    if (plan.kind === 'update') return updateSql(plan)
    return plan.kind === 'delete' ? deleteSql(plan) : countSql(plan)
  })
}

const names = fc.string({ minLength: 1, unit: ANY_CHARACTER }).filter((name) => !name.includes('\0'))
const hostile = fc.oneof(
  fc.string({ unit: ANY_CHARACTER }),
  fc.constantFrom(`'; drop table books; --`, '$1', '"', `\\'`, '*/', '$$', '\0'),
)

test('a value changes the parameters of a statement and never its text', () => {
  const values = fc.oneof(
    hostile,
    fc.integer(),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  )
  const body = (text: Json, list: Json, json: Json) => ({
    table: 'books',
    conditions: [
      { column: 'title', operator: 'gt', value: text },
      { column: 'title', operator: 'in', value: list },
      { operator: 'or', value: `id.eq.1,title.like."${String(text).replace(/["\\]/g, '\\$&')}"` },
    ],
    sort_by: 'id',
    columns: ['id', 'meta'],
    insert_body: { title: text, tags: list, meta: json },
    set: { title: text, meta: json },
  })
  const expected = build(body('a', ['b'], {})).map(({ text }) => text)
  fc.assert(
    fc.property(values, fc.array(values), fc.jsonValue(), (text, list, json) => {
      // fc.jsonValue generates values of type Json.
      const made = json === null ? {} : (json as Json)
      assert.deepEqual(
        build(body(text, list, made)).map((built) => built.text),
        expected,
      )
    }),
  )
})

test('a name that is not in the catalogue never reaches a statement', () => {
  fc.assert(
    fc.property(hostile, (name) => {
      fc.pre(!['id', 'title', 'tags', 'meta'].includes(name))
      const id = [{ column: 'id', value: 1 }]
      const attempts: [(body: Body, options: RequestOptions) => DataRequest, Body][] = [
        [readFetch, { conditions: [{ column: name, value: 1 }] }],
        [readFetch, { where: { [name]: { gt: 1 } } }],
        [readFetch, { sort_by: { field: name } }],
        [readFetch, { select: { a: name } }],
        [readInsert, { insert_body: [{ id: 1 }, { [name]: 1 }] }],
        [readInsert, { insert_body: { id: 1 }, on_conflict: [name] }],
        [readInsert, { insert_body: { id: 1 }, on_conflict: 'id', update_body: { [name]: 1 } }],
        [readUpdate, { set: { [name]: 1 }, conditions: id }],
        [readDelete, { conditions: [{ column: name, value: 1 }] }],
      ]
      for (const [read, body] of attempts)
        assert.throws(
          () => resolve(books, read({ table: 'books', ...body }, options), EVERY_RIGHT),
          (error) => error instanceof Failure && error.status === 400,
        )
    }),
  )
})

test('names with quotes, semicolons and comments stay names: the server parser reads them back', () => {
  fc.assert(
    fc.property(
      names,
      names,
      fc.uniqueArray(names, { minLength: 2, maxLength: 4 }),
      (schema, table, columns) => {
        const catalogue = catalogueOf(schema, table, columns)
        const [first = '', second = ''] = columns
        const quoted = (name: string) => `"${name.replace(/["\\]/g, '\\$&')}"`
        const request = { table: { schema, table } }
        const read = {
          ...readFetch({ table: 't', columns: [quoted(first)], sort_by: { field: second } }, options),
          ...request,
        }
        const plan = resolve(catalogue, read, EVERY_RIGHT)
        assert.equal(plan.kind, 'read')
        const { text } = plan.kind === 'read' ? selectSql(plan) : { text: '' }
        const tree = parseSync(text)
        assert.equal(tree.stmts?.length, 1)
        const readBack = JSON.stringify(tree)
        for (const name of [schema, table, first, second]) assert.ok(readBack.includes(JSON.stringify(name)))
      },
    ),
    { numRuns: 200 },
  )
})

test('a name with NUL, which would end the text of a statement, is refused', () => {
  assert.throws(() => quoteName('a\0b'), { code: 'invalid_identifier' })
  const alias = { table: 'books', columns: ['"a\0b":id'] }
  assert.throws(() => resolve(books, readFetch(alias, options), EVERY_RIGHT), { code: 'invalid_identifier' })
})

test('the text depends on the shape of a plan, not on aliases, lengths of lists or the number of rows', () => {
  const read = (body: Body) => {
    const plan = resolve(books, readFetch({ table: 'books', ...body }, options), EVERY_RIGHT)
    return plan.kind === 'read' ? selectSql(plan).text : ''
  }
  const list = (length: number) => Array.from({ length }, (_, index) => index)
  assert.equal(
    read({ columns: 'a:id', conditions: [{ column: 'id', operator: 'in', value: list(1) }] }),
    read({ columns: 'b:id', conditions: [{ column: 'id', operator: 'in', value: list(5_000) }] }),
  )
  const insert = (length: number) => {
    const plan = resolve(
      books,
      readInsert({ table: 'books', insert_body: list(length).map((id) => ({ id })) }, options),
      EVERY_RIGHT,
    )
    return plan.kind === 'insert' ? insertSql(plan).text : ''
  }
  assert.equal(insert(2), insert(70_000))
})
