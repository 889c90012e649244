import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRoutes } from '#test/public-routes.ts'

const { sql, route, change, stranger } = await createRoutes()
await sql(`create table long (id int primary key, text text, code text default '7');
  insert into long select n, repeat('x', 1000) from generate_series(1, 3000) n;
  insert into long values (3001, 'y', 'hush');
  create table file (id int primary key, bytes bytea, note text);
  insert into file values (1, 'Open', 'shown'), (2, 'Secret', 'hidden')`)
type Facts = Readonly<Record<string, unknown>>

const PUBLIC = [{ eq_column: 'is_public', eq_value: true }]

test('conditions and columns of the record hold for every operation', async () => {
  const key = await route({
    allowed_ops: ['fetch', 'insert', 'update', 'delete'],
    columns: ['id', 'title'],
    conditions: PUBLIC,
  })
  const call = (op: string, body: Facts) => stranger.post(`/public/${key}/${op}`, body)
  assert.deepEqual((await call('fetch', { sort_by: { field: 'id' } })).body.data, [
    { id: 1, title: 'One' },
    { id: 3, title: 'Three' },
  ])
  assert.equal((await call('fetch', { columns: '*', count: 'planned' })).body.count, 2)

  const added = await call('insert', {
    insert_body: [
      { id: 10, title: 'Ten' },
      { id: 11, title: 'Eleven' },
    ],
  })
  assert.deepEqual(
    [added.status, added.body.affected_rows, added.body.data],
    [
      200,
      2,
      [
        { id: 10, title: 'Ten' },
        { id: 11, title: 'Eleven' },
      ],
    ],
  )
  assert.deepEqual(await sql('select is_public from book where id > 9'), [
    { is_public: true },
    { is_public: true },
  ])

  const renamed = await call('update', {
    set: { title: 'All' },
    where: { id: { gt: 0 } },
    sort_by: { field: 'id', direction: 'desc' },
    head: false,
  })
  assert.deepEqual(
    renamed.body.data.map(({ id }: { id: number }) => id),
    [11, 10, 3, 1],
  )
  const removed = await call('delete', { where: { id: { gt: 1 } }, head: true })
  assert.equal(removed.body.affected_rows, 3)
  assert.deepEqual(await sql('select id, title from book order by id'), [
    { id: 1, title: 'All' },
    { id: 2, title: 'Two' },
  ])
  await sql(
    `update book set title = 'One' where id = 1; insert into book values (3, 'Three', null, true, 's3', 30.50)`,
  )
})

test('a written row that does not satisfy the conditions is refused, and nothing is written', async () => {
  const key = await route({
    allowed_ops: ['insert', 'update'],
    conditions: [...PUBLIC, { operator: 'lt', column: 'price', value: 100 }],
  })
  const before = await sql('select * from book order by id')
  const call = (op: string, body: Facts) => stranger.post(`/public/${key}/${op}`, body)
  const good = { id: 20, title: 'Good', price: 1, secret: 'g' }
  const bodies: readonly (readonly [string, Facts])[] = [
    ['insert', { insert_body: { id: 21, title: 'Private', price: 1, is_public: false, secret: 'p' } }],
    ['insert', { insert_body: [good, { id: 22, title: 'Dear', price: 100.0, secret: 'd' }] }],
    // A condition that is null is not satisfied.
    ['insert', { insert_body: [good, { id: 23, title: 'No price', price: null, secret: 'n' }] }],
    ['insert', { insert_body: { id: 24, title: 'Default price', secret: 'n' }, head: true }],
    ['insert', { insert_body: { ...good, is_public: null } }],
    ['insert', { insert_body: [{ ...good, is_public: 'f' }] }],
    ['update', { set: { is_public: false }, where: { id: 1 } }],
    ['update', { set: { is_public: false }, where: { id: 1 }, head: true }],
    ['update', { set: { price: 1000 }, where: { id: { gt: 0 } }, limit: 1 }],
    [
      'update',
      { set: { price: 1000 }, where: { id: { gt: 0 } }, sort_by: { field: 'id' }, columns: ['title'] },
    ],
    ['update', { set: { price: null }, where: { id: 3 } }],
  ]
  for (const [op, body] of bodies) {
    const answer = await call(op, body)
    assert.deepEqual(
      [answer.status, answer.body.code],
      [403, 'outside_route'],
      `${JSON.stringify(body)} ${answer.text}`,
    )
  }
  assert.deepEqual(await sql('select * from book order by id'), before)
})

test('triggers and generated columns are seen by the check', async () => {
  const key = await route({
    table_name: 'entry',
    allowed_ops: ['insert', 'update'],
    conditions: [
      { eq_column: 'owner', eq_value: 'Ada' },
      { eq_column: 'is_big', eq_value: false },
    ],
  })
  const upper = await stranger.post(`/public/${key}/insert`, { insert_body: { id: 1, size: 1 } })
  assert.equal(upper.body.code, 'outside_route')
  await change(key, {
    conditions: [
      { eq_column: 'owner', eq_value: 'ada' },
      { eq_column: 'is_big', eq_value: false },
    ],
  })
  const lower = await stranger.post(`/public/${key}/insert`, {
    insert_body: { id: 1, owner: 'ADA', size: 1 },
  })
  assert.deepEqual(lower.body.data, [{ id: 1, owner: 'ada', size: 1, is_big: false }])
  const big = await stranger.post(`/public/${key}/update`, { set: { size: 11 }, where: { id: 1 } })
  assert.equal(big.body.code, 'outside_route')
  assert.deepEqual(await sql('select size from entry'), [{ size: 1 }])
})

test('every place of a body that could mention more than the record fixes is refused', async () => {
  const key = await route({
    allowed_ops: ['fetch', 'insert', 'update', 'delete'],
    columns: ['id', 'title'],
    conditions: PUBLIC,
  })
  const before = await sql('select * from book order by id')
  const one = { where: { id: 1 } }
  const set = { set: { title: 'x' } }
  const row = { insert_body: { id: 30, title: 'x' } }
  const hidden: readonly (readonly [string, Facts])[] = [
    ['fetch', { columns: ['secret'] }],
    ['fetch', { columns: ['id', 'x:secret'] }],
    ['fetch', { columns: 'id,secret as title' }],
    ['fetch', { columns: ['book.secret'] }],
    ['fetch', { columns: ['"secret"'] }],
    ['fetch', { select: { secret: true } }],
    ['fetch', { select: { title: 'secret' } }],
    ['fetch', { conditions: [{ eq_column: 'secret', eq_value: 's1' }] }],
    ['fetch', { conditions: [{ operator: 'or', value: 'id.eq.1,secret.like.s%' }] }],
    ['fetch', { conditions: [{ operator: 'not', column: 'secret', value: 'eq.x' }] }],
    [
      'fetch',
      { conditions: [{ or: [{ column: 'id', value: 1 }, { not: { column: 'is_public', value: true } }] }] },
    ],
    ['fetch', { where: { or: [{ id: 1 }, { secret: { neq: null } }] } }],
    ['fetch', { where_filters: [{ column: 'secret', operator: 'is', value: 'null' }] }],
    ['fetch', { sort_by: { field: 'secret' } }],
    ['fetch', { orderBy: [{ column: 'secret' }] }],
    ['fetch', { group_by: 'secret' }],
    ['fetch', { columns: ['id'], group_by: 'id', aggregation_column: 'price' }],
    ['insert', { insert_body: { id: 30, title: 'x', secret: 'mine' } }],
    [
      'insert',
      {
        insert_body: [
          { id: 30, title: 'x' },
          { id: 31, title: 'x', is_public: true },
        ],
      },
    ],
    ['insert', { ...row, columns: ['secret'] }],
    ['update', { set: { secret: 'mine' }, ...one }],
    ['update', { columns: [{ column: 'secret', value: 'mine' }], ...one }],
    ['update', { ...set, where: { secret: 's1' } }],
    ['update', { ...set, ...one, columns: ['secret'] }],
    ['update', { ...set, ...one, sort_by: { field: 'secret' }, limit: 1 }],
    ['delete', { where: { secret: 's1' } }],
    ['delete', { ...one, columns: ['secret'] }],
  ]
  const wider: readonly (readonly [string, Facts])[] = [
    ['fetch', { schema_name: 'public' }],
    ['fetch', { table_name: 'author' }],
    ['fetch', { table: 'other.book' }],
    ['fetch', { view_name: 'pg_catalog.pg_authid' }],
    ['fetch', { columns: ['id', 'author(id)'] }],
    ['fetch', { columns: ['id::text'] }],
    ['fetch', { select: { author: { select: { id: true } } } }],
    ['fetch', { conditions: [{ column: 'id', value: '1', column_cast: 'text' }] }],
    ['fetch', { conditions: [{ eq_column: 'id', eq_value: '1', eq_value_cast: 'int' }] }],
    ['fetch', { conditions: [{ operator: 'or', value: 'id::text.eq.1' }] }],
    ['insert', { ...row, on_conflict: 'id' }],
    ['insert', { ...row, on_conflict: ['id'], update_body: { title: 'mine' } }],
    ['insert', { ...row, columns: ['id', 'author(id)'] }],
    ['update', { ...set, allow_unbounded: true }],
    ['delete', { allow_unbounded: true, ...one }],
  ]
  for (const [op, body] of hidden) {
    const answer = await stranger.post(`/public/${key}/${op}`, body)
    assert.deepEqual(
      [answer.status, answer.body.code],
      [400, 'unknown_column'],
      `${op} ${JSON.stringify(body)} ${answer.text}`,
    )
    assert.doesNotMatch(answer.text, /did_you_mean|"s1"|hush/)
  }
  for (const [op, body] of wider) {
    const answer = await stranger.post(`/public/${key}/${op}`, body)
    assert.deepEqual(
      [answer.status, answer.body.code],
      [403, 'outside_route'],
      `${op} ${JSON.stringify(body)} ${answer.text}`,
    )
  }
  const unbounded = await stranger.post(`/public/${key}/delete`, {})
  assert.equal(unbounded.body.code, 'unbounded_write')
  assert.deepEqual(await sql('select * from book order by id'), before)
})

test('errors of the database do not tell about columns and rows outside of the record', async () => {
  const key = await route({ table_name: 'once', allowed_ops: ['fetch', 'insert'], columns: ['id', 'title'] })
  const taken = await stranger.post(`/public/${key}/insert`, { insert_body: { id: 40, title: 'x' } })
  assert.equal(taken.status, 200)
  const again = await stranger.post(`/public/${key}/insert`, { insert_body: { id: 41, title: 'x' } })
  assert.deepEqual([again.status, again.body.code], [409, 'unique_violation'])
  assert.doesNotMatch(again.text, /token|hush|once/)
  // An escape character at the end is an error only for a row that matches so far.
  const guess = await stranger.post(`/public/${key}/fetch`, {
    conditions: [{ operator: 'like', column: 'title', value: 'Tw\\' }],
  })
  assert.deepEqual([guess.status, guess.body.code], [400, 'invalid_condition'])
})

test('a pattern for bytes does not tell about rows outside of the record', async () => {
  const key = await route({
    table_name: 'file',
    allowed_ops: ['fetch'],
    columns: ['id', 'bytes'],
    // PostgreSQL evaluates the cheaper condition first, which is that of the request.
    conditions: [{ operator: 'fts', column: 'note', value: 'shown' }],
  })
  // Each ends with the escape character.
  for (const value of ['\\x5365635c', 'Sec\\134', 'Sec\\\\', '\\x5365785c', 'Sex\\134', 'Sex\\\\']) {
    const guess = await stranger.post(`/public/${key}/fetch`, {
      conditions: [{ operator: 'like', column: 'bytes', value }],
    })
    assert.deepEqual([guess.status, guess.body.code], [400, 'invalid_condition'], value)
  }
})

test('an error after the first rows tells as little as one before them', async () => {
  const key = await route({
    table_name: 'long',
    allowed_ops: ['fetch'],
    columns: ['id', 'text'],
    conditions: [{ operator: 'gt', column: 'code', value: '5', column_cast: 'int', value_cast: 'int' }],
  })
  const grouped = await stranger.post(`/public/${key}/fetch`, { limit: 10_000, group_by: 'text' })
  assert.deepEqual([grouped.status, grouped.body.code], [422, 'invalid_value'])
  assert.doesNotMatch(grouped.text, /hush|long/)
})

test('on_conflict may overwrite only where the route allows update', async () => {
  const key = await route({ allowed_ops: ['insert'] })
  const body = {
    insert_body: { id: 1, title: 'mine', secret: 'x' },
    on_conflict: 'id',
    update_body: { title: 'mine' },
  }
  assert.equal((await stranger.post(`/public/${key}/insert`, body)).body.code, 'outside_route')
  assert.deepEqual(await sql('select title from book where id = 1'), [{ title: 'One' }])
  await change(key, { allowed_ops: ['insert', 'update'] })
  assert.equal((await stranger.post(`/public/${key}/insert`, body)).status, 200)
  await sql(`update book set title = 'One' where id = 1`)
})
