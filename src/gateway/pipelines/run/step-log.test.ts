import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { defaultConfig } from '#kernel/config/config.ts'
import { withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'
import { parsePipelines } from '../pipelines-file.ts'
import { createPipelineRegistry } from '../registry.ts'

const text = `
pipelines:
  copy:
    source: { table_name: original }
    transform: { column_aliases: { n: id } }
    sink: { table_name: copied }
`
const t = await testService({
  pipelines: createPipelineRegistry(parsePipelines(defaultConfig(), { name: 'pipelines.yaml', text }, {})),
  config: { gateway: { pipelines: { max_errors: 1 } } },
})
const { kernel, handlers } = t.service
const key = await t.key(['*'])
const sql = (url: string, text: string, values: unknown[] = []) =>
  withClient(url, async (client) => (await client.query(text, values)).rows)
await sql(
  t.clientUrl,
  `create table original as select n from generate_series(1, 3) n;
  create table copied (id int primary key check (id <> 13));
  create view slow as select n, pg_sleep(0.001)::text as slept from generate_series(1, 200000) n;
  create table far (n int, slept text)`,
)

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 1_000, 'it takes too long')
    await sleep(20)
  }
}

const drain = () => kernel.jobs.drain(handlers)
/** Rows of a run in the log, and the number of columns that are null. */
const steps = async (id: string) =>
  (
    await sql(
      t.loggingUrl,
      `select step, request_id, pipeline_name, service_client, table_name, status_code, error_message, details,
         duration_ms >= 0 as timed, created_at > now() - interval '1 minute' as fresh
       from pipeline_step_log where pipeline_run_id = $1 order by id`,
      [id],
    )
  ).map(({ timed, fresh, ...row }) => {
    assert.ok(timed && fresh)
    return row
  })
const copies = (from: number) => ({
  pipeline: 'copy',
  source: { conditions: { operator: 'gte', column: 'n', value: from } },
})

test('a run has three rows in the log, which wait in the queue when the answer arrives', async () => {
  const { status, body, headers } = await key.post('/pipelines', copies(2))
  assert.equal(status, 200)
  assert.deepEqual([body.rows_inserted, await steps(body.pipeline_run_id)], [2, []])
  assert.equal(await drain(), 1)
  const common = {
    request_id: headers.get('x-request-id'),
    pipeline_name: 'copy',
    service_client: 'default',
    status_code: 200,
    error_message: null,
  }
  assert.deepEqual(await steps(body.pipeline_run_id), [
    { step: 'source', table_name: 'public.original', ...common, details: { rows_fetched: 2 } },
    { step: 'transform', table_name: null, ...common, details: { candidates: 2 } },
    {
      ...{ step: 'sink', table_name: 'public.copied', ...common },
      details: { rows_inserted: 2, rows_refused: 0, outcome: 'completed' },
    },
  ])
})

test('a dry run logs only the name that a table could have', async () => {
  const names = ['a.b.c.d', 'x'.repeat(100_000)].map((table_name) => ({ table_name }))
  for (const sink of [...names, { table_name: 'x', schema_name: 'y'.repeat(100_000) }]) {
    const answer = await key.post('/pipelines/simulate', { source: { table_name: 'original' }, sink })
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_identifier'])
    assert.ok(answer.text.length < 1_000)
  }
})

test('dry runs are logged as such, failed runs not at all, and stopped ones with what is stored', async () => {
  const dry = await key.post('/pipelines/simulate', { source: { table_name: 'original' } })
  const failed = await key.post('/pipelines', { ...copies(1), sink: { table_name: 'missing' } })
  await sql(t.clientUrl, 'insert into original values (13), (20)')
  const stopped = await key.post('/pipelines', { ...copies(13), sink: { on_conflict: 'id' } })
  assert.deepEqual([dry.status, failed.status, stopped.body.stopped], [200, 404, 'too_many_errors'])
  assert.equal(await drain(), 2)
  const logged = await steps(dry.body.pipeline_run_id)
  assert.deepEqual(
    logged.map(({ step, pipeline_name, table_name, details }) => [
      step,
      pipeline_name,
      table_name,
      details.dry_run,
    ]),
    [
      ['source', null, 'public.original', true],
      ['transform', null, null, true],
      ['sink', null, null, true],
    ],
  )
  const [, , sink] = await steps(stopped.body.pipeline_run_id)
  assert.equal(sink?.details.outcome, 'too_many_errors')
  const [{ count } = { count: 0 }] = await sql(t.clientUrl, 'select count(*)::int from copied where id > 3')
  assert.equal(sink?.details.rows_inserted, count, 'the log claims what is stored')
})

test('a run whose caller leaves is logged as cancelled, with the rows that are stored', async () => {
  const leaving = new AbortController()
  const sending = request(`${t.url}/pipelines`, {
    method: 'POST',
    headers: {
      ...key.headers,
      'content-type': 'application/json',
      'x-request-id': '6f9619ff-8b86-4011-b42d-00cf4fc964ff',
    },
    body: JSON.stringify({ source: { table_name: 'slow' }, sink: { table_name: 'far' } }),
    signal: leaving.signal,
  }).catch(() => 'left')
  await until(async () => {
    const query =
      'select from pg_stat_activity where datname = current_database() and state = $1 and query like $2'
    return (await sql(t.clientUrl, query, ['active', '%"slow"%'])).length > 0
  })
  leaving.abort()
  assert.equal(await sending, 'left')
  await until(async () => (await drain()) > 0)
  const rows = await sql(
    t.loggingUrl,
    `select step, status_code, error_message, details from pipeline_step_log where request_id = '6f9619ff-8b86-4011-b42d-00cf4fc964ff' order by id`,
  )
  assert.deepEqual(
    rows.map(({ step, status_code, error_message }) => [step, status_code, error_message]),
    ['source', 'transform', 'sink'].map((step) => [step, 499, 'cancelled']),
  )
  const [{ count } = { count: -1 }] = await sql(t.clientUrl, 'select count(*)::int from far')
  assert.equal(rows[2]?.details.rows_inserted, count)
})

test('a log that cannot be written does not fail the run; the job is tried again and writes each row once', async () => {
  const failures = async () =>
    Number(/gatehouse_pipeline_log_failures_total (\d+)/.exec((await t.admin.get('/metrics')).text)?.[1])
  await sql(t.loggingUrl, 'alter table pipeline_step_log rename to away')
  const { status, body } = await key.post('/pipelines', {
    ...copies(30),
    source: { limit: 1 },
    sink: { on_conflict: 'id' },
  })
  assert.equal(status, 200)
  const before = await failures()
  assert.equal(await drain(), 1)
  assert.equal(await failures(), before + 1)
  await sql(t.loggingUrl, 'alter table away rename to pipeline_step_log')
  // The delay before the next attempt is 30 seconds.
  await sql(t.controlUrl, `update service_jobs.job set start_after = now() where name = 'log-pipeline-steps'`)
  const data = await sql(
    t.controlUrl,
    `select data from service_jobs.job where name = 'log-pipeline-steps' and state = 'retry'`,
  )
  assert.equal(await drain(), 1)
  assert.equal((await steps(body.pipeline_run_id)).length, 3)
  // As when a process ends between the insert and the end of the job.
  await handlers['log-pipeline-steps'](data[0]?.data, '')
  assert.equal((await steps(body.pipeline_run_id)).length, 3)
})

test('a queue that cannot be written does not fail the run', async () => {
  await sql(t.controlUrl, 'alter table service_jobs.queue rename to away')
  try {
    const { status } = await key.post('/pipelines', { ...copies(30), sink: { on_conflict: 'id' } })
    assert.equal(status, 200)
    assert.ok(t.log.some((line) => line.includes('"event":"pipeline_log_lost"')))
  } finally {
    await sql(t.controlUrl, 'alter table service_jobs.away rename to queue')
  }
})

test('the log is read through the logging client, by the admin key and keys that are bound to it', async () => {
  const read = (headers: Readonly<Record<string, string>>) =>
    actor(t.url, { ...headers, 'x-service-client': 'logging' }).post('/gateway/fetch', {
      ...{ table_name: 'pipeline_step_log', columns: ['step'], limit: 3, sort_by: { field: 'id' } },
    })
  const bound = await t.key(['pipeline_step_log.read'], { client_name: 'logging' })
  for (const headers of [t.admin.headers, { apikey: bound.apiKey }])
    assert.deepEqual(
      (await read(headers)).body.data,
      ['source', 'transform', 'sink'].map((step) => ({ step })),
    )
  const unbound = await t.key(['*'], { client_name: null })
  assert.equal((await read({ apikey: unbound.apiKey })).body.code, 'api_key_client_mismatch')
})

test('a pipeline reads the logging client with the admin key or a key that is bound to it, and never writes to it', async () => {
  const body = { source: { table_name: 'pipeline_step_log', columns: ['id'], limit: 1 } }
  const bound = await t.key(['*'], { client_name: 'logging' })
  const unbound = await t.key(['*'], { client_name: null })
  const simulate = async (headers: Readonly<Record<string, string>>, client: string, more: object = {}) => {
    const source = { ...body.source, ...more }
    const answer = await actor(t.url, { ...headers, 'x-service-client': client }).post(
      '/pipelines/simulate',
      { source },
    )
    return answer.body.code ?? answer.body.would_insert
  }
  const admin = t.admin.headers
  assert.equal(await simulate(admin, 'logging'), 1)
  assert.equal(await simulate(admin, 'default', { client: 'logging' }), 1)
  assert.equal(await simulate({ apikey: bound.apiKey }, 'logging'), 1)
  assert.equal(await simulate({ apikey: unbound.apiKey }, 'logging'), 'api_key_client_mismatch')
  for (const { apiKey } of [unbound, key])
    assert.equal(
      await simulate({ apikey: apiKey }, 'default', { client: 'logging' }),
      'api_key_client_mismatch',
    )
  const before = await sql(t.loggingUrl, 'select count(*) from pipeline_step_log')
  for (const [headers, client] of [
    [admin, 'logging'],
    [admin, 'default'],
    [{ apikey: bound.apiKey }, 'logging'],
  ] as const)
    for (const dry_run of [false, true]) {
      const answer = await actor(t.url, { ...headers, 'x-service-client': client }).post('/pipelines', {
        source: { table_name: 'original', client: 'default' },
        sink: { table_name: 'pipeline_step_log', client: 'logging' },
        dry_run,
      })
      assert.deepEqual([answer.status, answer.body.code], [403, 'read_only'], answer.text)
    }
  assert.deepEqual(await sql(t.loggingUrl, 'select count(*) from pipeline_step_log'), before)
})
