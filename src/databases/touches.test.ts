import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildCatalogue, type CatalogueRow } from '#databases/drivers/postgres/catalogue.ts'
import type { DataRequest } from '#databases/plan.ts'
import { readCount, readDelete, readFetch, readInsert, readUpdate } from '#databases/requests.ts'
import { resolve } from '#databases/resolve.ts'
import { mentions, touches } from '#databases/touches.ts'

const options = { limits: { columns: 256, conditions: 100, nesting: 10, rows: 1_000, maxRows: 10_000 } }
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
    ['1', 'public', 'orders', 'r', 0, true, true],
    ['2', 'crm', 'people', 'r', 0, true, true],
    ['3', 'public', 'lines', 'r', 0, true, true],
  ],
  columns: [
    ...['id', 'person_id', 'total', 'note'].map((name) => column('1', name)),
    ...['id', 'name', 'secret'].map((name) => column('2', name)),
    ...['id', 'order_id', 'price'].map((name) => column('3', name)),
  ],
  constraints: [
    ['1', 'orders_pkey', 'p', '', ['id'], '0', null],
    ['1', 'orders_person', 'f', '', ['person_id'], '2', ['id']],
    ['3', 'lines_order', 'f', '', ['order_id'], '1', ['id']],
  ],
})

const plan = (request: DataRequest) => resolve(catalogue, request)
const touched = (request: DataRequest) =>
  touches(plan(request)).map(
    ({ schema, table, action, because }) => `${schema}.${table}.${action} ${because}`,
  )
const mentioned = (request: DataRequest) =>
  mentions(plan(request)).map(({ table, column: name }) => `${table}.${name}`)
const conditions = [{ column: 'id', value: 1 }]

test('a read touches its table and every relation, however deep', () => {
  assert.deepEqual(touched(readFetch({ table: 'lines', columns: 'orders(id,crm.people(name))' }, options)), [
    'public.lines.read target',
    'public.orders.read relation',
    'crm.people.read relation',
  ])
  assert.deepEqual(touched(readCount({ table: 'orders' }, options)), ['public.orders.read target'])
})

test('a write touches its table, reads what it gives back that its caller did not write, and its relations', () => {
  assert.deepEqual(touched(readInsert({ table: 'orders', insert_body: { total: 1 } }, options)), [
    'public.orders.write target',
  ])
  const upsert = { table: 'orders', insert_body: { id: 1 }, on_conflict: 'id', update_body: { total: 2 } }
  assert.deepEqual(touched(readInsert(upsert, options)), [
    'public.orders.write target',
    'public.orders.read returning',
  ])
  const update = { table: 'orders', set: { total: 1 }, conditions }
  assert.deepEqual(touched(readUpdate(update, options)), [
    'public.orders.write target',
    'public.orders.read returning',
  ])
  assert.deepEqual(touched(readUpdate({ ...update, head: true }, options)), ['public.orders.write target'])
  assert.deepEqual(
    touched(readDelete({ table: 'orders', conditions, columns: 'id,person_id(name)' }, options)),
    ['public.orders.delete target', 'public.orders.read returning', 'crm.people.read relation'],
  )
})

test('before planning only the table itself is known', () => {
  assert.deepEqual(touches(readFetch({ table: 'nowhere', columns: 'orders(id)' }, options)), [
    { schema: 'public', table: 'nowhere', action: 'read', because: 'target' },
  ])
})

test('every column is mentioned that is returned, written, filtered, sorted or joined by', () => {
  const request = {
    table: 'orders',
    columns: 'total,person_id(name)',
    conditions: [{ operator: 'or', value: 'note.eq.1,not(id.eq.2)' }],
    sort_by: 'id',
  }
  assert.deepEqual(mentioned(readFetch(request, options)).sort(), [
    'orders.id',
    'orders.note',
    'orders.person_id',
    'orders.total',
    'people.id',
    'people.name',
  ])
  const upsert = {
    table: 'orders',
    columns: 'id',
    insert_body: [{ total: 1 }, { note: 2 }],
    on_conflict: 'id',
    update_body: { person_id: 2 },
  }
  assert.deepEqual(mentioned(readInsert(upsert, options)).sort(), [
    'orders.id',
    'orders.note',
    'orders.person_id',
    'orders.total',
  ])
  assert.deepEqual(
    mentioned(readDelete({ table: 'orders', columns: 'note', resource_id: 1 }, options)).sort(),
    ['orders.id', 'orders.note'],
  )
})
