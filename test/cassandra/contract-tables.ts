import type { Driver } from '#databases/drivers/driver.ts'
import type { Body } from '#databases/request/fields.ts'
import { type Calls, createCalls } from '#test/drivers/calls.ts'
import type { Subject } from '#test/drivers/contract.ts'
import type { Keyspace } from './server.ts'

/** The tables of the driver contract in CQL. The key of a row is its shelf (the partition) and its number. */
export const CONTRACT_TABLES = [
  'create table authors (shelf int, id bigint, name text, primary key (shelf, id))',
  `create table books (shelf int, id bigint, title text, author_id bigint, pages int, price decimal, exact decimal,
    tags list<text>, meta text, active boolean, lang text, primary key (shelf, id))`,
  ...['title', 'author_id', 'pages', 'exact', 'tags', 'active'].map(
    (column) => `create index on books (${column}) using 'sai'`,
  ),
]

type Place = { readonly driver: () => Driver; readonly keyspace: () => Keyspace }

/** The subject for the driver contract. All rows are on shelf 1 and are numbered in the order of their insertion. */
export function createSubject({ driver, keyspace }: Place): Subject {
  let given = { authors: 0, books: 0 }
  const numbered = (table: 'authors' | 'books') => (row: Body) => ({
    shelf: 1,
    ...(row.id === undefined && { id: ++given[table] }),
    ...row,
    // CQL has no JSON type.
    ...('meta' in row && { meta: JSON.stringify(row.meta) }),
  })
  return {
    driver,
    calls: onShelf(createCalls(driver), numbered),
    key: { columns: ['shelf', 'id'], ofOne: { id: 1 } },
    // One batch; a small server checks its conditions in less than a second.
    many: 2_000,
    async reset() {
      given = { authors: 0, books: 0 }
      await keyspace().run('truncate authors', 'truncate books')
    },
    without: ['constraints', 'defaults'],
    cannot: [
      ...(['neq', 'like', 'ilike', 'is', 'in', 'containedBy', 'overlaps', 'fts'] as const),
      ...(['or', 'not', 'cast', 'json', 'paging', 'relations', 'planned count'] as const),
      ...(['free writes', 'limited writes', 'transaction', 'idempotency', 'call', 'run'] as const),
    ],
  }
}

type Numbered = (table: 'authors' | 'books') => (row: Body) => Body

const onShelf = ({ fetch, insert, update, remove, count }: Calls, numbered: Numbered): Calls => ({
  fetch: (body) => fetch(onShelf1(body)),
  update: (body) => update(onShelf1(body)),
  remove: (body) => remove(onShelf1(body)),
  count: (body) => count(onShelf1(body)),
  insert(table, rows, more) {
    const list: readonly Body[] = Array.isArray(rows) ? rows : [rows]
    return insert(table, list.map(numbered(table === 'authors' ? 'authors' : 'books')), more)
  },
})

/** Adds the shelf to the conditions of a request, unless it is unbounded. */
const onShelf1 = (body: Body): Body => {
  if (body.allow_unbounded === true) return body
  const conditions = Array.isArray(body.conditions) ? body.conditions : []
  return { ...body, conditions: [{ column: 'shelf', value: 1 }, ...conditions] }
}
