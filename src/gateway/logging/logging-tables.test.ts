import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { prepareLogging } from './logging-tables.ts'

const t = await testService()
const logged = (text: string) => withClient(t.loggingUrl, async (client) => (await client.query(text)).rows)
const LOGS = ['database_audit_log', 'function_ddl_audit_log', 'pipeline_step_log']
const key = await t.key(['*', 'management.*'])
const GIVEN = '6f9619ff-8b86-4011-b42d-00cf4fc964ff'

test('the logs have a request id that is ours or a UUID, and no text of a caller', async () => {
  for (const [index, [id, kept]] of ([['ada:example.com', null], ['call-me-555.1234', null], [GIVEN, GIVEN]] as const).entries()) {
    const headers = { 'x-request-id': id }
    const ddl = `create function f${index}() returns int language sql return 1`
    const made = await key.send('PUT', '/management/functions', { body: { ddl }, headers })
    assert.deepEqual([made.status, made.headers.get('x-request-id')], [200, id], made.text)
    await key.post('/management/tables', { table_name: `t${index}`, columns: [{ name: 'a', data_type: 'text' }] })
    const table_name = `t${index}`
    const run = await key.post('/pipelines', { source: { table_name }, sink: { table_name } }, { headers })
    assert.equal(run.status, 200, run.text)
    await t.mails()
    for (const log of LOGS) {
      const about = log === 'pipeline_step_log' ? `table_name = 'public.t${index}' limit 1` : `object_name = 'f${index}'`
      assert.deepEqual(await logged(`select request_id from ${log} where ${about}`), [{ request_id: kept }], log)
    }
  }
}) // biome-ignore format: a table

test('logs of an earlier version take rows without a request id', async () => {
  for (const log of LOGS) await logged(`truncate ${log}; alter table ${log} alter column request_id set not null`)
  await prepareLogging(t.loggingUrl, undefined)
  const ddl = 'create function later() returns int language sql return 1'
  const made = await key.send('PUT', '/management/functions', { body: { ddl }, headers: { 'x-request-id': 'free.text' } })
  assert.equal(made.status, 200, made.text)
  assert.deepEqual(await logged('select request_id, status from function_ddl_audit_log'), [{ request_id: null, status: 'succeeded' }])
}) // biome-ignore format: short
