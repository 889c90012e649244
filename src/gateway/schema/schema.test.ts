import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import pg from 'pg'
import { actor, testService } from '#test/harness.ts'

const t = await testService({ config: { clients: { default: { max_connections: 3 } } } })
const reader = await t.key(['management.read'])

before(async () => {
  const client = new pg.Client({ connectionString: t.clientUrl })
  await client.connect()
  await client.query(`
    create schema sales;
    create type mood as enum ('a', 'b');
    create type place as (x int);
    create domain email as text check (value like '%@%');
    create table author (id bigint generated always as identity primary key, name varchar(20) not null, mail email);
    create table "odd ""name" (id int primary key, "a-b" text default 'x', author_id bigint not null references author on delete cascade,
      n numeric check (n > 0), tags text[], moods mood[], places place[], j jsonb, at timestamptz not null default now(), ok bool, p place,
      twice int generated always as (id * 2) stored);
    create function names() returns setof varchar begin atomic select name from author; end;
    create unique index odd_lower on "odd ""name" (lower("a-b"), id desc);
    create view authors as select name from author;
    create materialized view sales.total as select count(*) as n from author;
    insert into author (name) select 'A' from generate_series(1, 500);
    analyze author`)
  await client.end()
})

test('tables are listed with kind and estimated row count', async () => {
  const { status, body } = await reader.get('/schema/tables')
  assert.equal(status, 200)
  assert.deepEqual(body, {
    tables: [
      { table_schema: 'public', table_name: 'author', table_type: 'BASE TABLE', estimated_rows: 500 },
      { table_schema: 'public', table_name: 'authors', table_type: 'VIEW', estimated_rows: 0 },
      { table_schema: 'public', table_name: 'odd "name', table_type: 'BASE TABLE', estimated_rows: 0 },
      { table_schema: 'sales', table_name: 'total', table_type: 'MATERIALIZED VIEW', estimated_rows: 0 },
    ],
  })
  assert.equal((await reader.get('/schema/tables?table_schema=sales')).body.tables.length, 1)
})

test('columns are listed with type, default and nullability', async () => {
  const { body } = await reader.get('/schema/columns?table_name=author&table_schema=public')
  assert.deepEqual(body.columns.slice(1), [
    {
      ...{ column_name: 'name', data_type: 'character varying(20)', column_default: null, is_nullable: 'NO' },
      ...{ base_type: 'varchar', is_writable: true, enum_values: null },
    },
    {
      ...{ column_name: 'mail', data_type: 'email', column_default: null, is_nullable: 'YES' },
      ...{ base_type: 'text', is_writable: true, enum_values: null },
    },
  ])
  const odd = await reader.get(`/schema/columns?table_name=${encodeURIComponent('odd "name')}`)
  assert.equal(odd.body.columns[1].column_default, "'x'::text")
  const missing = await reader.get('/schema/columns')
  assert.deepEqual([missing.status, missing.body.code], [400, 'validation_error'])
  const unknown = await reader.get(
    `/schema/columns?table_name=${encodeURIComponent("x'; drop table author; --")}`,
  )
  assert.deepEqual([unknown.status, unknown.body.code], [404, 'table_not_found'])
})

test('columns tell what they take: the labels of an enum, and whether the database computes them', async () => {
  const { columns } = (await reader.get(`/schema/columns?table_name=${encodeURIComponent('odd "name')}`)).body
  const [moods, twice] = ['moods', 'twice'].map((name) =>
    columns.find(({ column_name }: { column_name: string }) => column_name === name),
  )
  assert.deepEqual([moods.base_type, moods.is_writable, moods.enum_values], ['_mood', true, null])
  assert.equal(twice.is_writable, false)
  const writer = await t.key(['gateway.*'])
  const query = 'create domain felt as mood; create table feelings (now mood, later felt)'
  assert.equal((await writer.post('/gateway/query', { query })).status, 200)
  const feelings = (await reader.get('/schema/columns?table_name=feelings')).body.columns
  assert.deepEqual(
    feelings.map(({ enum_values }: { enum_values: string[] }) => enum_values),
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
  )
  await writer.post('/gateway/query', { query: 'drop table feelings; drop domain felt' })
})

test('a table is named as in data operations', async () => {
  const paths = [
    'table_name=sales.total',
    'table_name=total&table_schema=sales',
    'table_name=total&schema_name=sales',
  ]
  for (const path of paths) {
    const { status, body, text } = await reader.get(`/schema/columns?${path}`)
    assert.equal(status, 200, text)
    assert.deepEqual(body.columns[0]?.column_name, 'n')
    assert.equal((await reader.get(`/schema/indexes?${path}`)).status, 200)
  }
  assert.equal((await reader.get('/schema/tables?schema_name=sales')).body.tables.length, 1)
  const { constraints } = (await reader.get('/schema/constraints?table_name=public.author')).body
  assert.deepEqual(
    [...new Set(constraints.map((item: { table_name: string }) => item.table_name))],
    ['author'],
  )
  for (const contradiction of [
    'table_name=sales.total&table_schema=public',
    'table_name=total&table_schema=a&schema_name=b',
  ]) {
    const { status, body } = await reader.get(`/schema/columns?${contradiction}`)
    assert.deepEqual([status, body.code], [400, 'invalid_identifier'])
  }
})

test('constraints and indexes are listed for one table or all', async () => {
  const { constraints } = (await reader.get('/schema/constraints')).body
  const reference = constraints.find(
    (item: { constraint_type: string }) => item.constraint_type === 'FOREIGN KEY',
  )
  assert.deepEqual(reference, {
    table_schema: 'public',
    table_name: 'odd "name',
    constraint_name: 'odd "name_author_id_fkey',
    constraint_type: 'FOREIGN KEY',
    columns: ['author_id'],
    references: { table_schema: 'public', table_name: 'author', columns: ['id'] },
    definition: 'FOREIGN KEY (author_id) REFERENCES author(id) ON DELETE CASCADE',
  })
  const check = constraints.find((item: { constraint_type: string }) => item.constraint_type === 'CHECK')
  assert.equal(check?.definition, 'CHECK ((n > (0)::numeric))')
  const { indexes } = (await reader.get(`/schema/indexes?table_name=${encodeURIComponent('odd "name')}`)).body
  assert.deepEqual(
    indexes.map(
      ({ index_name, columns, is_unique, is_primary, method, is_valid }: Record<string, unknown>) => [
        index_name,
        columns,
        is_unique,
        is_primary,
        method,
        is_valid,
      ],
    ),
    [
      ['odd "name_pkey', ['id'], true, true, 'btree', true],
      ['odd_lower', ['lower("a-b")', 'id'], true, false, 'btree', true],
    ],
  )
})

test('the generated TypeScript types are deterministic', async () => {
  const first = await reader.get('/schema/types')
  assert.equal(first.headers.get('content-type'), 'text/plain; charset=utf-8')
  assert.equal(first.text, EXPECTED)
  assert.equal((await reader.get('/schema/types')).text, first.text)
})

test('a lock on one table does not stop requests for the others', async () => {
  const key = await t.key(['*'])
  const holder = new pg.Client({ connectionString: t.clientUrl })
  await holder.connect()
  await holder.query('begin; lock table "odd ""name" in access exclusive mode')
  const began = performance.now()
  // Every change makes the service read the structure again.
  const made = await key.post('/management/tables', { table_name: 'free' })
  assert.equal(made.status, 200, made.text)
  const insert_body = [{ id: 7 }, {}]
  const inserted = await key.send('PUT', '/gateway/insert', { body: { table_name: 'free', insert_body } })
  assert.equal(inserted.status, 200, inserted.text)
  const indexed = await key.post('/management/indexes', { table_name: 'free', columns: ['id'] })
  assert.equal(indexed.status, 200, indexed.text)
  const { index_name } = indexed.body.data
  assert.equal((await key.send('DELETE', `/management/indexes/${index_name}`, { body: {} })).status, 200)
  assert.ok(performance.now() - began < 10_000)
  await holder.end()
})

test('definitions wait for a lock of another session only shortly, and leave connections to others', async () => {
  const holder = new pg.Client({ connectionString: t.clientUrl })
  await holder.connect()
  await holder.query('begin; lock table author, "odd ""name" in access exclusive mode')
  try {
    const all = await t.key(['*'])
    const lists = ['/schema/indexes', '/schema/constraints', '/management/functions?include_definition=true']
    const answers = [...lists, '/schema/indexes'].map((path) => all.get(path))
    assert.equal((await all.post('/query/count', { table_name: 'free' })).status, 200)
    const codes = (await Promise.all(answers)).map(({ status, body }) => `${status} ${body.code}`)
    assert.ok(codes.includes('503 object_busy'), `${codes}`)
    assert.deepEqual(
      codes.filter((code) => code !== '503 object_busy' && code !== '503 client_busy'),
      [],
    )
  } finally {
    await holder.end()
  }
  assert.equal((await reader.get('/schema/indexes')).status, 200)
})

test('the schema requires the admin key or a key with the right', async () => {
  const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'default' })
  const tableKey = await t.key(['gateway.read', 'author.*'])
  for (const list of ['tables', 'columns?table_name=author', 'constraints', 'indexes', 'types']) {
    assert.equal((await admin.get(`/schema/${list}`)).status, 200)
    assert.equal((await tableKey.get(`/schema/${list}`)).status, 403)
    assert.equal((await t.anon.get(`/schema/${list}`)).status, 401)
    assert.equal((await t.admin.get(`/schema/${list}`)).body.code, 'missing_client_header')
  }
})

const EXPECTED = `export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

export type Database = {
  public: {
    author: {
      row: {
        id: number
        name: string
        mail: string | null
      }
      insert: {
        name: string
        mail?: string | null
      }
      update: {
        name?: string
        mail?: string | null
      }
    }
    authors: {
      row: {
        name: string | null
      }
    }
    "odd \\"name": {
      row: {
        id: number
        "a-b": string | null
        author_id: number
        n: number | null
        tags: (string | null)[] | null
        moods: Json[] | null
        places: Json[] | null
        j: Json | null
        at: string
        ok: boolean | null
        p: Json | null
        twice: number | null
      }
      insert: {
        id: number
        "a-b"?: string | null
        author_id: number
        n?: number | null
        tags?: (string | null)[] | null
        moods?: Json[] | null
        places?: Json[] | null
        j?: Json | null
        at?: string
        ok?: boolean | null
        p?: Json | null
      }
      update: {
        id?: number
        "a-b"?: string | null
        author_id?: number
        n?: number | null
        tags?: (string | null)[] | null
        moods?: Json[] | null
        places?: Json[] | null
        j?: Json | null
        at?: string
        ok?: boolean | null
        p?: Json | null
      }
    }
  }
  sales: {
    total: {
      row: {
        n: number | null
      }
    }
  }
}
`
