import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { testService } from '#test/harness.ts'

const t = await testService()
const key = await t.key(['*'])
await withClient(t.clientUrl, (client) =>
  client.query(`create table source as select n from generate_series(1, 20000) n;
    create view breaking as select n, 1 / (90000 - n) as broken from generate_series(1, 100000) n;
    create view stuck as select n, repeat('x', 20000) as text, case when n > 500 then pg_sleep(600)::text end as slept from generate_series(1, 1000) n;
    create table sink (n int check (n <> 7), broken int);
    create table kept (n int, text text, slept text)`),
)

async function linesOf(path: string, body: object) {
  const headers = { ...key.headers, accept: 'application/x-ndjson', 'content-type': 'application/json' }
  const response = await fetch(new URL(path, t.url), { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await response.text()
  const lines = text.trimEnd().split('\n')
  return { status: response.status, headers: response.headers, lines: lines.map((line) => JSON.parse(line)) }
}
const SINK = { table_name: 'sink' }

test('a run answers its progress in lines, and then its result', async () => {
  const { status, headers, lines } = await linesOf('/pipelines', {
    source: { table_name: 'source' },
    sink: SINK,
  })
  assert.deepEqual([status, headers.get('content-type')], [200, 'application/x-ndjson; charset=utf-8'])
  const told = lines.slice(0, -1).map(({ progress }) => progress.rows_fetched)
  assert.ok(told.length > 0)
  assert.deepEqual(
    told,
    told.toSorted((one, other) => one - other),
  )
  const { result } = lines.at(-1)
  assert.deepEqual([result.rows_fetched, result.rows_inserted, result.errors.length], [20_000, 19_999, 1])
})

test('a dry run does so too, and one without rows has a result alone', async () => {
  const { lines } = await linesOf('/pipelines/simulate', { source: { table_name: 'source' } })
  assert.equal(lines.at(-1).result.would_insert, 20_000)
  const none = await linesOf('/pipelines/simulate', {
    source: { table_name: 'source', conditions: [{ column: 'n', value: 0 }] },
  })
  assert.equal(none.lines.at(-1).result.would_insert, 0)
})

test('what fails before the first batch is answered with its status, later in the last line', async () => {
  const refused = await linesOf('/pipelines', { source: { table_name: 'absent' }, sink: SINK })
  assert.equal(refused.status, 404)
  assert.equal(refused.lines[0].data.details.step, 'source')
  const { status, lines } = await linesOf('/pipelines', { source: { table_name: 'breaking' }, sink: SINK })
  const { failure } = lines.at(-1)
  assert.equal(status, 200)
  assert.equal(failure.details.step, 'source')
  assert.ok(failure.details.rows_inserted > 0)
})

test('a run whose caller leaves after a line ends', async () => {
  const leave = new AbortController()
  const headers = { ...key.headers, accept: 'application/x-ndjson', 'content-type': 'application/json' }
  const body = JSON.stringify({ source: { table_name: 'stuck' }, sink: { table_name: 'kept' } })
  const asked = { method: 'POST', headers, body, signal: leave.signal }
  const { body: answer } = await fetch(new URL('/pipelines', t.url), asked)
  const first = await answer?.getReader().read()
  const told = JSON.parse(new TextDecoder().decode(first?.value).split('\n')[0] ?? '').progress.rows_inserted
  assert.ok(told > 0 && told <= 500)
  leave.abort()
  const running = `select pid from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()`
  await eventually(async () =>
    withClient(t.clientUrl, async (client) => (await client.query(running)).rows.length === 0),
  )
})

test('a run whose key may run none any more says so, and what is stored, in its last line', async () => {
  for (const [path, sink] of [
    ['/pipelines', { table_name: 'kept' }],
    ['/pipelines/simulate', undefined],
  ] as const) {
    const losing = await t.key(['*'])
    const headers = { ...losing.headers, accept: 'application/x-ndjson', 'content-type': 'application/json' }
    const body = JSON.stringify({ source: { table_name: 'stuck' }, sink })
    const { body: answer } = await fetch(new URL(path, t.url), { method: 'POST', headers, body })
    const lines: string[] = []
    for await (const chunk of answer ?? []) {
      if (lines.length === 0) {
        const rights = ['stuck.read', 'kept.write']
        const change = await t.admin.send('PATCH', `/admin/api-keys/${losing.keyId}`, { body: { rights } })
        assert.equal(change.status, 200)
      }
      lines.push(...new TextDecoder().decode(chunk).trimEnd().split('\n'))
    }
    const { failure } = JSON.parse(lines.at(-1) ?? '')
    assert.deepEqual([failure.code, failure.details.required_right], ['insufficient_rights', 'pipelines.run'])
    assert.equal(typeof failure.details.rows_inserted, 'number')
  }
})

test('another media type is refused, and JSON is the usual one', async () => {
  const body = { source: { table_name: 'source', limit: 1 } }
  const asking = (accept: string) => key.post('/pipelines/simulate', body, { headers: { accept } })
  assert.equal((await asking('text/csv')).status, 406)
  for (const accept of ['*/*', 'application/json, application/x-ndjson'])
    assert.equal((await asking(accept)).body.would_insert, 1)
})
