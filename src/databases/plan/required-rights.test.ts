import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildCatalogue, type CatalogueRow } from '#databases/drivers/postgres/catalogue/catalogue.ts'
import { requiredRights } from '#databases/plan/required-rights.ts'
import { resolve } from '#databases/plan/resolve.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { readCount, readDelete, readFetch, readInsert, readUpdate } from '#databases/request/read-request.ts'
import type { DataRequest } from '#databases/request/request.ts'
import { ORDINARY_LIMITS } from '#test/drivers/calls.ts'

const options = {
  limits: ORDINARY_LIMITS,
}
const column = (table: string, name: string): CatalogueRow['columns'][number] => [
  table,
  name,
  'int',
  'int',
  'N',
  'int4',
  true,
  false,
  '',
  null,
]
const catalogue = buildCatalogue({
  tables: [
    ['1', 'public', 'orders', 'r', 0, true, true, false, false, false, false],
    ['2', 'crm', 'people', 'r', 0, true, true, false, false, false, false],
    ['3', 'public', 'lines', 'r', 0, true, true, false, false, false, false],
    ['4', 'public', 'lots', 'r', 0, true, true, false, false, false, false],
  ],
  columns: [
    ...['id', 'person_id', 'total', 'note'].map((name) => column('1', name)),
    ...['id', 'name', 'secret'].map((name) => column('2', name)),
    ...['id', 'order_id', 'price'].map((name) => column('3', name)),
    ...['id', 'shelf', 'note', 'no_such_column'].map((name) => column('4', name)),
  ],
  constraints: [
    ['1', 'orders_pkey', 'p', '', ['id'], '0', null],
    ['1', 'orders_person', 'f', '', ['person_id'], '2', ['id']],
    ['4', 'lots_pkey', 'p', '', ['id', 'shelf'], '0', null],
    ['3', 'lines_order', 'f', '', ['order_id'], '1', ['id']],
  ],
})

const plan = (request: DataRequest) => resolve(catalogue, request, EVERY_RIGHT)
const required = (request: DataRequest) =>
  requiredRights(plan(request)).map(
    ({ schema, table, action, because }) => `${schema}.${table}.${action} ${because}`,
  )
const conditions = [{ column: 'id', value: 1 }]

test('a read needs its table and every relation, however deep', () => {
  assert.deepEqual(required(readFetch({ table: 'lines', columns: 'orders(id,crm.people(name))' }, options)), [
    'public.lines.read target',
    'public.orders.read relation',
    'crm.people.read relation',
  ])
  assert.deepEqual(required(readCount({ table: 'orders' }, options)), ['public.orders.read target'])
})

test('a write needs its table, to read what it returns or decides by, and its relations', () => {
  const write = ['public.orders.write target']
  const reading = [...write, 'public.orders.read columns']
  const insert = { table: 'orders', insert_body: { id: 1 } }
  const update = { table: 'orders', set: { total: 1 }, conditions }
  assert.deepEqual(required(readInsert(insert, options)), reading)
  assert.deepEqual(required(readInsert({ ...insert, head: true }, options)), write)
  assert.deepEqual(required(readUpdate(update, options)), reading)
  assert.deepEqual(required(readUpdate({ ...update, head: true }, options)), write)
  assert.deepEqual(
    required(readDelete({ table: 'orders', conditions, columns: 'id,person_id(name)' }, options)),
    ['public.orders.delete target', 'public.orders.read columns', 'crm.people.read relation'],
  )
})

test('only equality on the whole primary key names rows without reading columns', () => {
  const needsReadWith = (more: Record<string, unknown>) =>
    required(readDelete({ table: 'lots', head: true, ...more }, options)).length === 2
  const whole = [
    { column: 'shelf', value: 1 },
    { column: 'id', value: 2 },
  ]
  const [shelf] = whole
  assert.ok(!needsReadWith({ conditions: whole }))
  assert.ok(!needsReadWith({ conditions: [{ and: whole }, ...whole] }))
  assert.ok(!needsReadWith({ where: { shelf: 1, id: { eq: 2 } } }))
  for (const more of [
    { conditions: [shelf] },
    { conditions: [...whole, { column: 'note', value: 1 }] },
    { conditions: [...whole, { column: 'no_such_column', value: 1 }] },
    { conditions: [{ or: whole }] },
    { conditions: [{ or: [{ and: whole }] }] },
    { conditions: [shelf, { not: { column: 'id', value: 2 } }] },
    { conditions: [shelf, { column: 'id', operator: 'gt', value: 2 }] },
    { conditions: [shelf, { column: 'id', operator: 'in', value: [2] }] },
    { conditions: [shelf, { column: 'id', value: null }] },
    { conditions: [shelf, { column: 'id', value: 2, value_cast: 'text' }] },
    { conditions: [shelf, { column: 'id', value: 2, column_cast: 'text' }] },
    { conditions: whole, limit: 1 },
    { conditions: whole, offset: 1 },
    { conditions: whole, count: 'exact' },
    { conditions: whole, sort_by: 'id' },
    { conditions: whole, columns: 'id' },
    { conditions: whole, select: { id: true } },
    { allow_unbounded: true },
  ])
    assert.ok(needsReadWith(more), JSON.stringify(more))
  const upsert = { table: 'lots', insert_body: { id: 1 }, head: true }
  const rightsOf = (on_conflict: string) => required(readInsert({ ...upsert, on_conflict }, options)).length
  assert.deepEqual(['id,shelf', 'id', 'note', 'id,shelf,note'].map(rightsOf), [1, 2, 2, 2])
})

test('before planning only the right to the table itself is known', () => {
  assert.deepEqual(requiredRights(readFetch({ table: 'nowhere', columns: 'orders(id)' }, options)), [
    { schema: 'public', table: 'nowhere', action: 'read', because: 'target' },
  ])
})
