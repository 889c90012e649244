import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pipelineService } from '#test/pipelines.ts'

const { t, here, there, sql, run, simulate, count } = await pipelineService({ max_groups: 50 })
await sql(
  here.url,
  `create table book (id int primary key, title text, author text, pages numeric);
  insert into book values (1, 'Notes', 'Ada', 66), (2, 'Sketches', 'Ada', 4.50);
  create view wide as select n as id, n % 1000 as label from generate_series(1, 60000) n`,
)
await sql(
  there.url,
  `create table shelf (id int primary key, name text, author text, pages numeric);
  create table number (id int primary key, value int);
  create table pair (id int primary key, value text unique)`,
)

test('a pipeline needs its own right and that of both tables', async () => {
  const body = {
    source: { table_name: 'book', columns: ['id', 'title'] },
    transform: { column_aliases: { title: 'value' } },
    sink: { table_name: 'pair', client: 'there' },
  }
  const lacking = async (...rights: string[]) => {
    const { status, body: refused } = await run(body, await t.key(rights, { client_name: 'here' }))
    return [status, refused.code, refused.data?.details.required_right]
  }
  const needs = (right: string) => [403, 'insufficient_rights', right]
  assert.deepEqual(await lacking('book.read', 'pair.write'), needs('pipelines.run'))
  assert.deepEqual(await lacking('pipelines.run', 'pair.write'), needs('book.read'))
  assert.deepEqual(await lacking('pipelines.run', 'book.read'), needs('pair.write'))
  assert.equal(await count('pair'), 0)
  const able = await t.key(['pipelines.run', 'book.read', 'pair.write'], { client_name: 'here' })
  const refused = await run({ ...body, source: { ...body.source, limit: 2 } }, able)
  assert.deepEqual([refused.status, refused.body.rows_inserted], [200, 2])
  // Without the right to read the sink, values and names of its rows stay hidden.
  const twice = await run({ ...body, source: { ...body.source, limit: 2 } }, able)
  assert.deepEqual(twice.body.errors[0], {
    index: 0,
    error: 'A row with this value exists already',
    code: 'unique_violation',
  })
})

test('a step runs on another client only if the key lists it', async () => {
  const body = (client: string) => ({
    source: { table_name: 'book', limit: 1 },
    sink: { table_name: 'shelf', client },
    dry_run: true,
  })
  const listed = await t.key(['*'], { client_name: 'here', client_overrides: ['there'] })
  assert.equal((await run(body('there'), listed)).status, 200)
  const other = await run(body('open'), listed)
  assert.deepEqual([other.status, other.body.code], [403, 'api_key_client_mismatch'])
  // A name outside the list tells nothing about the existence of the client.
  const none = await run(body('nowhere'), listed)
  assert.deepEqual([none.status, none.body.code], [403, 'api_key_client_mismatch'])
  const unknown = await run(body('nowhere'))
  assert.deepEqual([unknown.status, unknown.body.code], [400, 'unknown_client'])
  const foreign = await run(body('there'), listed, 'there')
  assert.deepEqual([foreign.status, foreign.body.code], [403, 'api_key_client_mismatch'])
})

test('without a key, only clients that need none take part', async () => {
  const body = (client: string) => ({
    source: { table_name: 'shelf' },
    sink: { table_name: 'shelf', client },
    dry_run: true,
  })
  assert.equal((await run(body('open'), t.anon, 'open')).status, 200)
  assert.equal((await run(body('there'), t.anon, 'open')).status, 401)
  assert.equal((await run(body('logging'), t.anon, 'open')).status, 401)
})

test('the logging client is never a sink, and a source only for the admin key', async () => {
  const source = { table_name: 'database_audit_log', client: 'logging' }
  const sink = { table_name: 'shelf', client: 'there' }
  assert.equal((await simulate({ source }, t.admin)).status, 200)
  assert.equal((await simulate({ source })).status, 403)
  for (const dry_run of [false, true]) {
    const { status, body } = await run(
      { source: { table_name: 'book' }, sink: { table_name: 'x', client: 'logging' }, dry_run },
      t.admin,
    )
    assert.deepEqual([status, body.code], [403, 'read_only'])
  }
  assert.equal((await run({ source, sink })).status, 403)
})

test('a frozen client is read and not written', async () => {
  await t.admin.post('/admin/clients', { client_name: 'ice', url: there.url })
  await t.admin.send('PUT', '/admin/clients/ice/freeze', { body: { is_frozen: true } })
  const from = await run({
    source: { table_name: 'shelf', client: 'ice' },
    sink: { table_name: 'number', client: 'ice' },
    dry_run: true,
  })
  assert.equal(from.status, 200, from.text)
  const to = await run({
    source: { table_name: 'book', columns: ['id'] },
    sink: { table_name: 'number', client: 'ice' },
  })
  assert.deepEqual([to.status, to.body.code], [403, 'client_frozen'])
})

test('both ends accept the spellings of a table that data operations accept', async () => {
  const before = await count('shelf')
  for (const spelling of ['table_name', 'table', 'view_name']) {
    const source = { [spelling]: 'book', columns: 'id', limit: 0 }
    const { status, text } = await run({ source, sink: { [spelling]: 'shelf', client: 'there' } })
    assert.equal(status, 200, text)
  }
  const twice = await run({
    source: { table: 'book', view_name: 'wide' },
    sink: { table: 'shelf', client: 'there' },
  })
  assert.deepEqual([twice.status, twice.body.code], [400, 'missing_table'])
  assert.equal(await count('shelf'), before)
})

test('malformed pipelines are refused before anything is read', async () => {
  const source = { table_name: 'book' }
  const sink = { table_name: 'shelf', client: 'there' }
  const refusals: readonly (readonly [object, number, string])[] = [
    [{}, 400, 'missing_table'],
    [{ source }, 400, 'missing_table'],
    [{ sink }, 400, 'missing_table'],
    [{ pipeline: 'none', source, sink }, 400, 'unknown_pipeline'],
    [{ source: { table_name: 'nothing' }, sink }, 404, 'table_not_found'],
    [{ source, sink: { ...sink, table_name: 'nothing' } }, 404, 'table_not_found'],
    [{ source, sink }, 400, 'unknown_column'],
    [{ source: { ...source, limit: -1 }, sink }, 400, 'validation_error'],
    [{ source: { ...source, columns: 'nothing' }, sink }, 400, 'unknown_column'],
    [{ source, sink, transform: { group_by: 'nothing' } }, 400, 'unknown_column'],
    [
      { source, sink, transform: { aggregation_strategy: 'cumulative_sum' } },
      400,
      'aggregation_column_required',
    ],
    [{ source, sink, transform: { column_aliases: { nothing: 'name' } } }, 400, 'invalid_pipeline'],
    [{ source, sink, transform: { column_aliases: { title: 'author' } } }, 400, 'invalid_pipeline'],
    [
      { source: { ...source, columns: 'id' }, sink, transform: { column_aliases: { id: null } } },
      400,
      'invalid_pipeline',
    ],
    [
      { source, sink, transform: { group_by: 'pages', aggregation_column: 'pages' } },
      400,
      'invalid_pipeline',
    ],
    [
      { source, sink: { ...sink, on_conflict: 'name' }, transform: { column_aliases: { title: 'name' } } },
      400,
      'invalid_conflict_target',
    ],
    [
      { source: { table_name: 'wide' }, transform: { group_by: 'label' }, sink, dry_run: true },
      413,
      'too_many_groups',
    ],
  ]
  const before = await count('shelf')
  for (const [body, status, code] of refusals) {
    const answer = await run(body)
    assert.deepEqual([answer.status, answer.body.code], [status, code], JSON.stringify(body))
  }
  assert.equal(await count('shelf'), before)
})
