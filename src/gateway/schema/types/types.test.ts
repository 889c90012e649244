import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { createBookshop } from '#test/postgrest/bookshop.ts'
import { TYPED_TABLES } from '#test/typed-tables.ts'
import { generateTypes } from './types.ts'

const t = await testService()
const { driver } = await createBookshop()
const reader = await t.key(['management.read'])
const typesOf = async (query: string) => {
  const { status, text, headers } = await reader.get(`/schema/types?${query}`)
  assert.equal(status, 200, text)
  assert.equal(headers.get('content-type'), 'text/plain; charset=utf-8')
  return text
}

before(() => withClient(t.clientUrl, (client) => client.query(TYPED_TABLES)))

test('the shape kysely has an interface for each table, and types as pg reads them', async () => {
  const text = await typesOf('shape=kysely')
  assert.equal(text.slice(text.indexOf('export type Mood')), KYSELY)
  assert.ok(text.startsWith('import type { ColumnType } from "kysely"\n'))
  assert.ok(
    text.includes(
      '\nexport type Int8 = ColumnType<string, bigint | number | string, bigint | number | string>\n',
    ),
  )
})

test('exact numbers are bigints and texts where a number would lose digits, and always for Kysely, whose driver knows the types', async () => {
  assert.match(
    await typesOf('numbers=exact'),
    /row: \{\n {8}id: number\n {8}author_id: \(number \| bigint\)\n {8}price: \(number \| bigint \| string\) \| null\n/,
  )
  assert.match(
    await typesOf('shape=supabase&numbers=exact'),
    /Row: \{\n {10}id: number\n {10}author_id: \(number \| bigint\)\n {10}price: \(number \| bigint \| string\) \| null\n/,
  )
  assert.match(await typesOf('shape=kysely&numbers=exact'), /export type Int8 = ColumnType<bigint, /)
  assert.equal(await typesOf('shape=default'), (await reader.get('/schema/types')).text)
})

test('an unknown shape is refused, and hidden tables stay hidden in all shapes', async () => {
  for (const query of ['shape=prisma', 'numbers=number', 'shape='])
    assert.equal((await reader.get(`/schema/types?${query}`)).body.code, 'validation_error', query)
  const other = await t.key(['gateway.read', 'author.*'])
  assert.equal((await other.get('/schema/types?shape=supabase')).body.code, 'insufficient_rights')
  // Makes the table of answers under keys.
  const writer = await t.key(['*'])
  const payload = { table_name: 'author', insert_body: { name: 'Ada' } }
  const operations = [{ id: 'one', kind: 'insert', payload }]
  const once = await writer.post('/gateway/transaction', { operations, idempotency_key: 'once' })
  assert.equal(once.status, 200, once.text)
  const { rows } = await withClient(t.clientUrl, (client) =>
    client.query("select from pg_class where relname = 'service_idempotency'"),
  )
  assert.equal(rows.length, 1)
  for (const shape of ['default', 'supabase', 'kysely'])
    assert.ok(!(await typesOf(`shape=${shape}`)).includes('service_idempotency'), shape)
})

test('functions are shown to those who may list them', async () => {
  const able = await t.key(['management.read', 'management.functions.read'])
  const [shown, hidden] = [
    (await able.get('/schema/types?shape=supabase')).text,
    await typesOf('shape=supabase'),
  ]
  assert.match(shown, /\n {6}books_of: \{/)
  assert.equal((await reader.get('/management/functions')).status, 403)
  assert.doesNotMatch(hidden, /books_of|shout/)
  const functions = /\n {4}Functions: (\{\n.*?\n {4}\}|\{ \[_ in never\]: never \})(?=\n {4}Enums)/gs
  assert.equal(shown.replaceAll(functions, ''), hidden.replaceAll(functions, ''))
})

test('a driver without declared types has tables alone, and none for Kysely', async () => {
  const text = await generateTypes(driver, { shape: 'supabase', numbers: 'number', withFunctions: true })
  assert.match(text, /Tables: \{\n {6}authors: \{\n {8}Row: \{\n/)
  assert.match(text, /Functions: \{ \[_ in never\]: never \}\n {4}Enums: \{ \[_ in never\]: never \}/)
  await assert.rejects(generateTypes(driver, { shape: 'kysely', numbers: 'number', withFunctions: true }), {
    code: 'unsupported_by_driver',
  })
})

test('a row may be missing that policies may hide, or whose key was not checked', async () => {
  const able = await t.key(['gateway.*'])
  const query = `create table vault (id int primary key); alter table vault enable row level security;
    create table entry (vault_id int not null references vault); create table loose (author_id bigint not null);
    alter table loose add constraint loose_author foreign key (author_id) references author not valid;
    create table parent (author_id bigint not null references author); create table child () inherits (parent)`
  assert.equal((await able.post('/gateway/query', { query })).status, 200)
  const keys = [
    ...(await typesOf('shape=supabase')).matchAll(/foreignKeyName: "(\w+)"[^}]*?(mayBeMissing: true)?\s*\}/g),
  ]
  assert.deepEqual(
    keys.map(([, name, missing]) => [name, missing !== undefined]),
    [
      ['book_author_id_fkey', false],
      ['cover_book_id_fkey', false],
      ['entry_vault_id_fkey', true],
      ['loose_author', true],
      ['parent_author_id_fkey', true],
    ],
  )
})

/** Indented, since a line that begins with `export` would be one of this module. */
const KYSELY = `
  export type Mood = "a \\"good\\" one" | "b's"

  export interface Author {
    id: GeneratedAlways<Int8>
    name: string
    mail: string | null
    felt: Generated<Mood>
    at: Generated<Timestamp>
  }

  export interface Book {
    id: Generated<number>
    author_id: Int8
    price: Numeric | null
    tags: string[] | null
    feels: string | null
    places: string | null
    facts: Json
    twice: GeneratedAlways<number | null>
  }

  export interface Counted {
    n: Int8 | null
  }

  export interface Cover {
    book_id: number
    image: Buffer | null
  }

  export interface Names {
    id: Int8 | null
    name: string | null
    loud: string | null
  }

  export interface SalesProto {
    id: number | null
    parent: number | null
    "a-b": Generated<string | null>
  }

  export interface DB {
    author: Author
    book: Book
    counted: Counted
    cover: Cover
    names: Names
    "sales.__proto__": SalesProto
  }
`
  .slice(1)
  .replace(/^ {2}/gm, '')
