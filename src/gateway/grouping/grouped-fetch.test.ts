import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import pg from 'pg'
import { testService } from '#test/harness.ts'

/** Few connections, so that a connection that is not released is soon missed. */
const CONNECTIONS = 2
const t = await testService({ config: { clients: { default: { max_connections: CONNECTIONS } } } })
const key = await t.key(['gateway.read'])

before(async () => {
  const client = new pg.Client({ connectionString: t.clientUrl })
  await client.connect()
  await client.query(`
    create table sale (id int primary key, at timestamptz, shop text, amount numeric, ratio float8, note json, doc jsonb);
    insert into sale values
      (1, '2026-01-31 23:30:00+00', 'b', 0.1, 1e300, '1', '{"a": 1}'),
      (2, '2026-02-01 00:10:00+01', 'a', 0.2, 1e-7, null, null),
      (3, '2026-02-01 10:00:00+00', null, 12345678901234567890.0123456789, null, null, null),
      (4, '2026-02-01 10:59:59+00', 'b', null, 0.1, null, null),
      (5, null, 'b', 0.1, 0.2, null, null);
    create table large (id int, day date default '2026-01-01', pad text default repeat('x', 5000));
    insert into large select generate_series(1, 9000)`)
  await client.end()
})

const fetchRows = (more: object) =>
  key.post('/gateway/fetch', { table_name: 'sale', sort_by: { field: 'id' }, ...more })

test("group_by groups rows by a column's text, ascending, nulls last", async () => {
  const answer = await fetchRows({ columns: ['id', 'shop'], group_by: 'shop' })
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.body.data.length, 5)
  assert.deepEqual(answer.body.post_processing, {
    grouped: [
      { label: 'a', rows: [{ id: 2, shop: 'a' }] },
      { label: 'b', rows: [1, 4, 5].map((id) => ({ id, shop: 'b' })) },
      { label: null, rows: [{ id: 3, shop: null }] },
    ],
  })
})

test('sums are exact, and the cumulative sum follows the order of the groups', async () => {
  const body = {
    group_by: 'at',
    time_granularity: 'day',
    aggregation_column: 'amount',
    aggregation_strategy: 'cumulative_sum',
  }
  const answer = await fetchRows({ columns: ['id', 'at', 'amount'], ...body })
  assert.equal(answer.status, 200, answer.text)
  const { grouped } = answer.body.post_processing
  assert.deepEqual(
    grouped.map(({ label }: { label: string }) => label),
    ['2026-01-31T00:00:00Z', '2026-02-01T00:00:00Z', null],
  )
  assert.match(answer.text, /"sum":0\.3,"cumulative_sum":0\.3,"count":2\}/)
  assert.match(
    answer.text,
    /"sum":12345678901234567890\.0123456789,"cumulative_sum":12345678901234567890\.3123456789,"count":1\}/,
  )
  assert.match(answer.text, /"sum":0\.1,"cumulative_sum":12345678901234567890\.4123456789,"count":1\}/)
})

test('columns of group_by and aggregation need not be returned', async () => {
  const answer = await fetchRows({
    columns: 'id,doc',
    group_by: 'shop',
    aggregation_column: 'ratio',
    strip_nulls: true,
  })
  assert.deepEqual(answer.body.data, [{ id: 1, doc: { a: 1 } }, { id: 2 }, { id: 3 }, { id: 4 }, { id: 5 }])
  const [, b] = answer.body.post_processing.grouped
  assert.deepEqual(b.rows, [{ id: 1, doc: { a: 1 } }, { id: 4 }, { id: 5 }])
  assert.ok(
    answer.text.includes(
      `"aggregation":{"column":"ratio","strategy":null,"sum":1${'0'.repeat(300)}.3,"count":3}`,
    ),
  )
})

test('aliases can be used for columns, and aggregation_dedup counts equal rows once', async () => {
  const body = {
    columns: ['where:shop', 'n:amount'],
    conditions: [{ eq_column: 'amount', eq_value: 0.1 }],
    group_by: 'where',
    aggregation_column: 'n',
  }
  const sumOf = async (aggregation_dedup: boolean) =>
    (await fetchRows({ ...body, aggregation_dedup })).body.post_processing.grouped[0].aggregation
  assert.deepEqual(await sumOf(false), { column: 'n', strategy: null, sum: 0.2, count: 2 })
  assert.deepEqual(await sumOf(true), { column: 'n', strategy: null, sum: 0.1, count: 1 })
})

test('GET /data supports grouping as well', async () => {
  const query =
    '/data?view=sale&eq_column=shop&eq_value=b&columns=id&sort_by=id&group_by=at&time_granularity=hour'
  const answer = await key.get(
    `${query}&aggregation_column=id&aggregation_strategy=cumulative_sum&aggregation_dedup=true`,
  )
  assert.deepEqual(answer.body.post_processing.grouped, [
    {
      label: '2026-01-31T23:00:00Z',
      rows: [{ id: 1 }],
      aggregation: { column: 'id', strategy: 'cumulative_sum', sum: 1, cumulative_sum: 1, count: 1 },
    },
    {
      label: '2026-02-01T10:00:00Z',
      rows: [{ id: 4 }],
      aggregation: { column: 'id', strategy: 'cumulative_sum', sum: 4, cumulative_sum: 5, count: 1 },
    },
    {
      label: null,
      rows: [{ id: 5 }],
      aggregation: { column: 'id', strategy: 'cumulative_sum', sum: 5, cumulative_sum: 10, count: 1 },
    },
  ])
})

test('invalid grouping or aggregation is rejected with its cause', async () => {
  const refused = async (more: object) => {
    const { status, body } = await fetchRows(more)
    return [status, body.code, body.data?.details?.column ?? body.data?.details?.field]
  }
  const strategy = { aggregation_strategy: 'cumulative_sum' }
  assert.deepEqual(await refused({ group_by: 'shop', ...strategy }), [
    400,
    'aggregation_column_required',
    'aggregation_column',
  ])
  assert.deepEqual(await refused(strategy), [400, 'aggregation_column_required', 'aggregation_column'])
  assert.deepEqual(await refused({ group_by: 'shoe' }), [400, 'unknown_column', 'shoe'])
  assert.deepEqual(await refused({ group_by: 'shop', aggregation_column: 'cost' }), [
    400,
    'unknown_column',
    'cost',
  ])
  assert.deepEqual(await refused({ group_by: 'shop', aggregation_column: 'shop' }), [
    422,
    'invalid_value',
    'shop',
  ])
  assert.deepEqual(await refused({ group_by: 'shop', time_granularity: 'day' }), [
    422,
    'invalid_value',
    'shop',
  ])
  assert.deepEqual(await refused({ group_by: 'at', time_granularity: 'week' }), [
    400,
    'validation_error',
    'time_granularity',
  ])
  const invalid = await fetchRows({ group_by: 'shop', aggregation_column: 'shop' })
  assert.match(invalid.body.message, /^The value "b" of shop is not a number of at most 1400 digits$/)
})

test('without group_by nothing is grouped', async () => {
  const answer = await fetchRows({ time_granularity: 'day', aggregation_column: 'amount' })
  assert.deepEqual([answer.status, answer.body.post_processing], [200, undefined])
})

test('grouping more rows than the memory limit is rejected, and the connection is released', async () => {
  const small = await fetchRows({
    table_name: 'large',
    columns: 'id',
    limit: 9_000,
    group_by: 'day',
    aggregation_column: 'id',
  })
  assert.equal(small.body.post_processing.grouped[0].aggregation.sum, 40_504_500)
  for (let round = 0; round <= CONNECTIONS; round++) {
    const answer = await fetchRows({ table_name: 'large', limit: 9_000, group_by: 'day' })
    assert.deepEqual([answer.status, answer.body.code], [413, 'result_too_large'])
  }
  assert.equal((await fetchRows({})).status, 200)
})
