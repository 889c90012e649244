import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { type Actor, type Answer, testService } from '#test/harness.ts'
import { lastAudit } from '#test/management/last-audit.ts'

const t = await testService()
const key = await t.key(['management.*', 'gateway.*'])

type EventOf = { readonly name: string; readonly data: object }
const events: EventOf[] = []
t.service.kernel.events.subscribe((name, data) => void events.push({ name, data }))
const tables = () => events.splice(0).map(({ name, data }) => [name, 'table' in data && data.table])

const drop = (path: string, who: Actor) => who.send('DELETE', `/management/${path}`, { body: {} })

async function created(table_name: string): Promise<void> {
  const answer = await key.post('/management/tables', { table_name })
  assert.equal(answer.status, 200, answer.text)
}

/** Status and code. */
const refusal = ({ status, body }: Answer) => [status, body.code]

test('a change whose key is revoked while it waits for the audit log or a lock is undone', async () => {
  for (const [url, table] of [
    [t.loggingUrl, 'database_audit_log'],
    [t.clientUrl, 'waited_for'],
  ] as const) {
    if (url === t.clientUrl) await created(table)
    await created(`kept_${table}`)
    const { keyId, ...who } = await t.key(['management.*'])
    const target = url === t.clientUrl ? table : `kept_${table}`
    await withClient(url, async (holder) => {
      await holder.query(`begin; lock table ${table} in access exclusive mode`)
      const change = drop(`tables/${target}`, who)
      const waiting = `select from ${OWN_LOCKS} where not granted`
      while ((await holder.query(waiting)).rowCount === 0) await sleep(10)
      assert.equal((await t.admin.send('DELETE', `/admin/api-keys/${keyId}`)).status, 200)
      await holder.query('rollback')
      assert.deepEqual(refusal(await change), [401, 'invalid_api_key'])
    })
    assert.equal((await key.post('/gateway/fetch', { table_name: target })).status, 200)
    assert.deepEqual(await lastAudit(t, target), {
      operation: 'drop_table',
      object_type: 'table',
      status: 'failed',
    })
  }
  const dropped = tables().filter(([name]) => name === 'schema_table_dropped')
  assert.deepEqual(dropped, [])
})

test('a change whose connection dies before COMMIT has failed, and says that nothing was done', async () => {
  await created('cut_off')
  await withClient(t.clientUrl, async (holder) => {
    await holder.query('begin; lock table cut_off in access exclusive mode')
    const change = drop('tables/cut_off', key)
    const waiting = `select pg_terminate_backend(pid) from ${OWN_LOCKS} where not granted`
    while ((await holder.query(waiting)).rowCount === 0) await sleep(10)
    await holder.query('rollback')
    const answer = await change
    assert.deepEqual(refusal(answer), [502, 'connection_lost'])
    assert.equal(answer.body.error, 'Nothing was changed.')
  })
  assert.equal((await key.post('/gateway/fetch', { table_name: 'cut_off' })).status, 200)
  assert.equal((await lastAudit(t, 'cut_off')).status, 'failed')
})

test('a change that the audit trail cannot take is a success with its event, and is counted', async () => {
  const onControl = (text: string) => withClient(t.controlUrl, (client) => client.query(text))
  await onControl('alter table service.audit_event rename to elsewhere')
  try {
    const answer = await key.post('/management/tables', { table_name: 'untold' })
    assert.equal(answer.status, 200, answer.text)
  } finally {
    await onControl('alter table service.elsewhere rename to audit_event')
  }
  assert.deepEqual(tables().at(-1), ['schema_table_created', 'public.untold'])
  assert.match((await t.admin.get('/metrics')).text, /^gatehouse_audit_events_lost_total 1$/m)
  assert.ok(t.log.some((line) => line.includes('audit_event_lost')))
})

test('a row of the audit log that stays pending is reported, and one that the log leaves out stops the change', async () => {
  const onLog = (text: string) => withClient(t.loggingUrl, (client) => client.query(text))
  const trigger = (when: string, body: string) =>
    onLog(`create or replace function meddle() returns trigger language plpgsql as 'begin ${body} end';
      create or replace trigger meddle before ${when} on database_audit_log for each row execute function meddle()`)
  await trigger('update', "raise exception ''no'';")
  await created('unended')
  assert.equal((await lastAudit(t, 'unended')).status, 'pending')
  assert.ok(t.log.some((line) => line.includes('audit_row_pending')))

  await trigger('insert', 'return null;')
  const ddl = 'create function unlogged() returns int return 1'
  const refused = await key.send('PUT', '/management/functions', { body: { ddl } })
  assert.deepEqual(refusal(refused), [503, 'audit_unavailable'])
  const { body } = await key.get('/management/functions?name_like=unlogged')
  assert.equal(body.data.total, 0)
})
