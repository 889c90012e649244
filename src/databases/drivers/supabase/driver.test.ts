import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requireAbility } from '#databases/drivers/abilities.ts'
import type { CallRequest } from '#databases/drivers/driver.ts'
import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import { requiredRights } from '#databases/plan/required-rights.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { readFetch } from '#databases/request/read-request.ts'
import { createCalls, textOf } from '#test/drivers/calls.ts'
import { createBookshop } from '#test/postgrest/bookshop.ts'

const { driver, endpoint, open, direct, run, reset } = await createBookshop()
const { fetch, insert, remove } = createCalls(() => driver)
const unsupported = { code: 'unsupported_by_driver', status: 400 }

test('an ambiguous relation is refused, and rights to its real target are required', async () => {
  await run(
    'create table secret (id int primary key, word text)',
    'create table part (id int primary key, owner int references secret, up int references part, shadow int references secret)',
    'create function "secret"(part) returns setof secret language sql stable as $$ select * from secret $$',
    `comment on column part.id is 'Note:
This is a Foreign Key to \`authors.id\`.<fk table=''authors'' column=''id''/>'`,
    'create table up (id int primary key)',
  )
  await assert.rejects(
    fetch({ table: 'part', columns: 'owner(word)' }),
    unsupported,
    'a function of its name',
  )
  await assert.rejects(
    fetch({ table: 'part', columns: 'up(id)' }),
    unsupported,
    'a table of the name of the key',
  )
  await run('drop function "secret"(part)', 'drop table up', `insert into secret values (1, 'hidden')`)
  await run('insert into part values (1, 1, null, null), (2, null, 1, null)')
  const body = { table: 'part', columns: 'id,owner(word),up(id)', sort_by: 'id' }
  const plan = await driver.plan(
    readFetch(body, {
      limits: {
        columns: 9,
        conditions: 9,
        nesting: 9,
        relations: 9,
        insertRows: 100_000,
        rows: 9,
        maxRows: 9,
      },
    }),
    EVERY_RIGHT,
  )
  assert.deepEqual(
    requiredRights(plan).map(({ table }) => table),
    ['part', 'secret'],
  )
  assert.deepEqual((await fetch(body)).rows, [
    { id: 1, owner: { word: 'hidden' }, up: null },
    { id: 2, owner: null, up: { id: 1 } },
  ])
  // A key that only a comment claims has no effect.
  await assert.rejects(fetch({ table: 'part', columns: 'authors(name)' }), { code: 'unknown_relation' })
})

test('a to-many relation is an array, even where a key allows only one row', async () => {
  await run(
    'create table person (id int primary key)',
    'create table passport (person_id int primary key references person, number text)',
    `insert into person values (1), (2)`,
    `insert into passport values (1, 'x')`,
  )
  const { rows } = await fetch({ table: 'person', columns: 'id,passport(number)', sort_by: 'id' })
  assert.deepEqual(rows, [
    { id: 1, passport: [{ number: 'x' }] },
    { id: 2, passport: [] },
  ])
})

test('an alias that PostgREST would take for the column of a condition is refused', async () => {
  for (const more of [
    { conditions: [{ column: 'title', operator: 'is', value: null }] },
    { sort_by: 'title' },
  ])
    await assert.rejects(fetch({ table: 'books', columns: 'title:pages', ...more }), unsupported)
  await assert.rejects(
    fetch({ table: 'books', columns: 'pages:authors(name)', conditions: [{ column: 'pages', value: null }] }),
    unsupported,
  )
})

test('rows cut by the backend are reported', async () => {
  await run('create table many as select i as id from generate_series(1, 300) i')
  const fresh = open()
  const limits = {
    columns: 9,
    conditions: 9,
    nesting: 9,
    relations: 9,
    insertRows: 100_000,
    rows: 250,
    maxRows: 1_000,
  }
  const read = async (body: object) => {
    const request = readFetch({ table: 'many', sort_by: 'id', ...body }, { limits })
    const answer = await fresh.select(await fresh.plan(request, EVERY_RIGHT))
    const rows = JSON.parse(await textOf(answer))
    assert.equal(rows.length, answer.facts().rows)
    return [rows.length, answer.facts().hasMore]
  }
  endpoint.maxRows = 120
  assert.deepEqual(await read({ limit: 500 }), [120, true])
  assert.deepEqual(await read({}), [120, true])
  assert.deepEqual(await read({ limit: 500, offset: 180 }), [120, false])
  assert.deepEqual(await read({ limit: 500, offset: 280 }), [20, false])
  assert.deepEqual(await read({ limit: 120 }), [120, false])
  assert.deepEqual(await read({ limit: 500, count: 'exact' }), [120, true])
  endpoint.maxRows = undefined
  assert.deepEqual(await read({ limit: 500 }), [300, false])
  assert.deepEqual(await read({}), [250, true])
  const before = endpoint.asked.length
  assert.deepEqual(await read({ limit: 500, offset: 10 }), [290, false])
  assert.equal(endpoint.asked.length, before + 1, 'a smaller answer than one before is whole')
  fresh.invalidate()
  endpoint.maxRows = 7
  assert.deepEqual(await read({ limit: 500 }), [7, true], 'it gives fewer than it did')
  await fresh.close()
})

test('rows cut by a small limit of the backend are reported, also of functions and relations', async () => {
  await run(
    'create table shelf (id int primary key)',
    'create table jar (id int primary key, shelf_id int references shelf)',
    'insert into shelf values (1), (2)',
    'insert into jar select i, 1 from generate_series(1, 5) i',
    'create function jars() returns setof jar language sql stable as $$ select * from jar $$',
  )
  endpoint.maxRows = 3
  const small = open()
  const own = createCalls(() => small)
  const facts = ({ rows, hasMore }: { rows: unknown[]; hasMore: boolean }) => [rows.length, hasMore]
  assert.deepEqual(facts(await own.fetch({ table: 'shelf' })), [2, false])
  assert.deepEqual(facts(await own.fetch({ table: 'jar', limit: 4 })), [3, true])
  assert.deepEqual(facts(await own.fetch({ table: 'jar', limit: 4, offset: 2 })), [3, false])
  const related = await own.fetch({ table: 'shelf', columns: 'id,jar(id)', limit: 1 })
  assert.deepEqual([related.rows[0].jar.length, related.hasMore], [3, true])
  const called = await call('jars', {}, { body: { limit: 4 } }, small)
  assert.deepEqual([called.rows, called.hasMore, called.total], [3, true, undefined])
  endpoint.maxRows = undefined
  assert.equal((await call('jars', {}, { body: { limit: 5 } }, small)).hasMore, false)
  await small.close()
})

test('an update_body equal to the inserted row is accepted, another is refused', async () => {
  await reset()
  await insert('books', { title: 'one', pages: 1 })
  const rows = [
    { title: 'one', pages: 7 },
    { title: 'two', pages: 7 },
  ]
  const upsert = (update_body: object) =>
    insert('books', rows, { on_conflict: 'title', update_body, columns: 'title,pages' })
  for (const other of [{ pages: 8 }, { lang: 'de' }, { pages: 7, lang: 'de' }, { title: 'one', pages: 7 }])
    await assert.rejects(upsert(other), unsupported, JSON.stringify(other))
  assert.deepEqual((await upsert({ pages: 7 })).rows, rows)
})

test('a driver that only reads writes nothing and calls functions by GET', async () => {
  await reset()
  await run(
    'create function note_it(word text) returns void language sql as $$ insert into authors (name) values (word) $$',
  )
  const reading = open(true)
  const own = createCalls(() => reading)
  await assert.rejects(own.insert('authors', { name: 'x' }), { code: 'read_only', status: 403 })
  await assert.rejects(own.remove({ table: 'authors', conditions: [{ column: 'id', value: 1 }] }), {
    code: 'read_only',
  })
  await assert.rejects(call('note_it', { word: 'x' }, {}, reading), { code: 'read_only' })
  assert.equal((await fetch({ table: 'authors' })).rows.length, 0)
  await reading.close()
})

const call = async (
  name: string,
  given: object,
  more: Partial<CallRequest> & { body?: object } = {},
  by = driver,
) => {
  const { body = {}, ...facts } = more
  const limits = {
    columns: 20,
    conditions: 20,
    nesting: 5,
    relations: 5,
    insertRows: 100_000,
    rows: 5,
    maxRows: 50,
  }
  const run = requireAbility(by, 'call')
  const answer = await run({
    read: readFetch({ table: name, ...body }, { limits }),
    arguments: given as CallRequest['arguments'],
    areTexts: false,
    readOnly: false,
    presence: ALWAYS_PRESENT,
    ...facts,
  })
  return { text: await textOf(answer), ...answer.facts() }
}

test('functions are called with named arguments, with any result', async () => {
  await reset()
  await run(
    `insert into authors (name) values ('Ada'), ('Bob')`,
    'create function doubled(n numeric) returns numeric language sql stable as $$ select n * 2 $$',
    'create function list(words text[]) returns setof text language sql stable as $$ select unnest(words) $$',
    'create function people(prefix text default $$$$) returns setof authors language sql stable as $$ select * from authors where name like prefix || chr(37) $$',
    'create function odd_argument("select" text) returns text language sql stable as $$ select "select" $$',
    'create function silent() returns void language sql as $$ select 1 $$',
  )
  assert.equal(
    (await call('doubled', { n: JSON.rawJSON('12345678901234567890.5') })).text,
    '[{"doubled":24691357802469135781.0}]',
  )
  assert.equal(
    (await call('doubled', { n: '21' }, { readOnly: true, areTexts: true })).text,
    '[{"doubled":42}]',
  )
  assert.deepEqual(JSON.parse((await call('list', { words: ['a,"b', 'c}'] }, { readOnly: true })).text), [
    { list: ['a,"b', 'c}'] },
  ])
  const chosen = await call(
    'people',
    {},
    { body: { columns: 'name', conditions: [{ column: 'id', operator: 'gt', value: 1 }], count: 'exact' } },
  )
  assert.deepEqual([chosen.text, chosen.total], ['[{"name":"Bob"}]', 1])
  assert.deepEqual(await call('people', {}, { body: { limit: 1, sort_by: 'id' } }), {
    text: '[{"id":1,"name":"Ada"}]',
    rows: 1,
    hasMore: false,
    total: undefined,
  })
  assert.equal((await call('silent', {})).text, '[]')
  await assert.rejects(call('people', { nothing: 1 }), { code: 'invalid_arguments', status: 400 })
  await assert.rejects(call('people', {}, { body: { columns: 'books(title)' } }), unsupported)
  // In a URL it would choose columns, and with them relations.
  assert.equal((await call('odd_argument', { select: 'x' })).text, '[{"odd_argument":"x"}]')
  await assert.rejects(call('odd_argument', { select: 'x' }, { readOnly: true }), unsupported)
})

test('each exposed schema has its own tables, and others do not exist', async () => {
  await run(
    'create table sales.books (id int, only_here text)',
    'create schema hidden',
    'create table hidden.books (id int)',
  )
  await run(`insert into sales.books values (1, 'x')`)
  assert.deepEqual((await fetch({ table: 'sales.books' })).rows, [{ id: 1, only_here: 'x' }])
  await assert.rejects(fetch({ table: 'hidden.books' }), { code: 'table_not_found', status: 404 })
})

test('external changes are seen: new tables and columns at once, dropped ones by the next plan', async () => {
  await driver.catalogue()
  await direct('create table late (a int, b int)')
  await new Promise((resolve) => setTimeout(resolve, 1_050))
  assert.deepEqual((await fetch({ table: 'late' })).rows, [])
  await direct('alter table late drop column b')
  await insert('late', { a: 1 })
  assert.deepEqual((await fetch({ table: 'late' })).rows, [{ a: 1 }])
  await direct('drop table late')
  await assert.rejects(fetch({ table: 'late' }), { code: 'table_not_found', status: 404 })
  assert.equal((await remove({ table: 'books', conditions: [{ column: 'id', value: 0 }] })).affected, 0)
})
