import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRoutes } from '#test/public-routes.ts'

const { sql, route, stranger } = await createRoutes()
const rate_limit = { requests: 10_000, window_seconds: 60 }
/**
 * Operators of `cell` fail on every value that they see, with the value in the message, and cost next to nothing, so that the planner prefers
 * them to the conditions of a record. `restrict` lets it try them on the values of its statistics. Visible rows have no cell.
 */
await sql(`create type cell as (secret int, note text);
  create function peek(one cell, other cell) returns boolean language plpgsql immutable strict cost 0.00001 as
    $$ begin raise exception 'seen %', one.secret using errcode = 'invalid_text_representation'; end $$;
  create operator = (leftarg = cell, rightarg = cell, function = peek, restrict = eqsel);
  create operator <> (leftarg = cell, rightarg = cell, function = peek, restrict = neqsel);
  create operator < (leftarg = cell, rightarg = cell, function = peek, restrict = scalarltsel);
  create operator @> (leftarg = cell, rightarg = cell, function = peek, restrict = contsel);
  create operator && (leftarg = cell, rightarg = cell, function = peek);
  create table vault (id int primary key, owner text, amount int, cell cell, document text);
  insert into vault select n, 'hidden', n % 3, (7, 'x')::cell, repeat('word ', 100) from generate_series(1, 300) n;
  insert into vault values (1001, 'shown', 1, null, 'shown'), (1002, 'shown', 2, null, 'shown');
  alter table vault alter cell set statistics 1000;
  create type reading as (sensor int, raw json);
  create table log (id int primary key, owner text, reading reading);
  insert into log values (1, 'hidden', (42, '{}')), (2, 'shown', (1, '{}'));
  create table wide (id int primary key, owner text, slug text, note text);
    insert into wide select n, 'owner ' || n % 100, 'slug ' || n, 'note' from generate_series(1, 20000) n;
    create index on wide (slug); create index on wide (owner, id); analyze wide;
  create table held (id int primary key, owner text not null, code text unique, size int check (size < 10));
    insert into held values (1, 'hidden', 'taken', 1)`)

const SHOWN = [{ eq_column: 'owner', eq_value: 'shown' }]
/** As text: a call that builds the record would make the operator less cheap. */
const guess = '(7,x)'

/** Conditions that evaluate an operator of `cell`. */
const leaky: readonly unknown[] = [
  [{ column: 'cell', value: guess }],
  [{ operator: 'neq', column: 'cell', value: guess }],
  [{ operator: 'lt', column: 'cell', value: guess }],
  [{ operator: 'contains', column: 'cell', value: guess }],
  [{ operator: 'overlaps', column: 'cell', value: guess }],
  [{ operator: 'in', column: 'cell', value: [guess] }],
  [{ not: { column: 'cell', value: guess } }],
  [
    {
      or: [
        { column: 'cell', value: guess },
        { column: 'id', operator: 'gt', value: 0 },
      ],
    },
  ],
  [
    { column: 'id', operator: 'gt', value: 0 },
    { column: 'cell', value: guess },
  ],
]

test('no condition of a body is evaluated on a row outside of the conditions of the record', async () => {
  const allowed_ops = ['fetch', 'update', 'delete']
  const key = await route({ table_name: 'vault', conditions: SHOWN, allowed_ops, rate_limit })
  const before = await sql('select * from vault order by id')
  // With and without statistics.
  for (const prepare of ['select 1', 'analyze vault']) {
    await sql(prepare)
    for (const conditions of leaky)
      for (const [op, body] of [
        ['fetch', { conditions }],
        ['fetch', { conditions, count: 'exact', head: true }],
        ['fetch', { conditions, count: 'planned' }],
        ['fetch', { conditions, group_by: 'owner', aggregation_column: 'amount' }],
        ['fetch', { conditions, columns: ['cell'], sort_by: { field: 'amount' }, limit: 1 }],
        ['update', { conditions, set: { amount: 9 }, columns: ['id'] }],
        ['update', { conditions, set: { amount: 9 }, limit: 1, sort_by: { field: 'amount' } }],
        ['delete', { conditions: [...(conditions as object[]), { column: 'id', value: 5 }] }],
        ['delete', { conditions, resource_id: 5 }],
        [
          'delete',
          {
            conditions: [...(conditions as object[]), { column: 'amount', value: 7 }],
            limit: 5,
            count: 'exact',
          },
        ],
      ] as const) {
        const answer = await stranger.post(`/public/${key}/${op}`, body)
        assert.equal(answer.status, 200, `${op} ${JSON.stringify(body)} ${answer.text}`)
      }
  }
  const hidden = (rows: readonly object[]) => rows.filter((row) => 'owner' in row && row.owner === 'hidden')
  assert.deepEqual(hidden(await sql('select * from vault order by id')), hidden(before))
})

test('a comparison that fails inside of a record is told about, whatever is outside of it', async () => {
  const key = await route({
    table_name: 'log',
    conditions: SHOWN,
    columns: ['id', 'reading'],
    allowed_ops: ['fetch'],
  })
  const asked = (sensor: number) =>
    stranger.post(`/public/${key}/fetch`, { conditions: [{ column: 'reading', value: { sensor, raw: {} } }] })
  // Of a row with another sensor the JSON is not compared, so that only this one fails.
  const [inside, outside, nowhere] = [await asked(1), await asked(42), await asked(43)]
  assert.notEqual(inside.status, 200)
  assert.deepEqual([outside.status, outside.body.data], [200, []], outside.text)
  assert.deepEqual([nowhere.status, nowhere.body.data], [200, []], nowhere.text)
})

test('the conditions of the record and plain comparisons of the body use an index', async () => {
  const key = await route({
    table_name: 'wide',
    conditions: [{ eq_column: 'owner', eq_value: 'owner 7' }],
    allowed_ops: ['fetch'],
  })
  const scans = async () =>
    (
      await sql(
        `select pg_stat_clear_snapshot(), (select sum(seq_tup_read)::int from pg_stat_user_tables where relname = 'wide') as read`,
      )
    )[0]?.read
  for (const conditions of [
    [{ column: 'id', value: 107 }],
    [{ column: 'slug', value: 'slug 107' }],
    [
      { operator: 'in', column: 'id', value: [107, 207] },
      { operator: 'like', column: 'slug', value: 'slug 1%' },
    ],
    [{ operator: 'ilike', column: 'note', value: 'NOTE' }],
  ]) {
    const before = await scans()
    const answer = await stranger.post(`/public/${key}/fetch`, { conditions })
    assert.equal(answer.status, 200, answer.text)
    assert.ok(answer.body.data.length > 0)
    await sql('select pg_stat_force_next_flush()').catch(() => {})
    assert.equal(await scans(), before, JSON.stringify(conditions))
  }
})

test('failures of constraints carry no details', async () => {
  const columns = ['id', 'owner', 'code', 'size']
  const key = await route({
    table_name: 'held',
    conditions: SHOWN,
    columns,
    allowed_ops: ['insert', 'update'],
  })
  const insert = (row: object) => stranger.post(`/public/${key}/insert`, { insert_body: { id: 2, ...row } })
  for (const [row, code] of [
    [{ code: 'taken' }, 'unique_violation'],
    [{ id: 1 }, 'unique_violation'],
    [{ size: 11 }, 'check_violation'],
    [{ id: null }, 'not_null_violation'],
  ] as const) {
    const answer = await insert(row)
    assert.equal(answer.body.code, code, answer.text)
    assert.deepEqual(answer.body.data?.details ?? {}, {}, answer.text)
    assert.doesNotMatch(answer.text, /taken|held|size/)
  }
  assert.equal((await sql('select * from held')).length, 1)
})
