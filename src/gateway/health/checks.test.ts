import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { readiness } from '#test/readiness.ts'

test('a dead mail server and an unusable folder for backups are components of the health, and leave the service ready', async () => {
  const t = await testService({
    config: {
      mail: { transport: 'smtp', smtp_url: 'smtp://ada:hidden@127.0.0.1:1', from: 'auth@example.com' },
      backups: { location: '/dev/null/backups' },
    },
  })
  const { status, components } = (await t.admin.get('/health')).body
  const messages = Object.fromEntries(
    components.map(({ name, message }: { name: string; message: string }) => [name, message]),
  )
  assert.equal(status, 'degraded')
  assert.match(messages.mail, /^mail\.smtp_url: 127\.0\.0\.1:1 does not answer as a mail server does/)
  assert.match(messages.backups, /^Backups cannot be written to \/dev\/null\/backups \(ENOTDIR\)/)
  assert.deepEqual((await t.anon.get('/health')).body, { status: 'degraded' })
  assert.equal((await readiness(t.anon)).status, 200)
  await t.stop()
})

test('a service whose control role cannot write is not ready', async () => {
  const t = await testService()
  assert.equal((await readiness(t.anon)).status, 200)
  await withClient(t.controlUrl, (client) =>
    client.query('revoke insert on service.session from current_user'),
  )
  const { status, body } = await readiness(t.anon)
  assert.equal(status, 503)
  assert.match(
    body.problems.join(),
    /^The role of database\.url .* may not write to service\.session in the control database/,
  )
  const { components } = (await t.admin.get('/health')).body
  assert.ok(components.some(({ name }: { name: string }) => name === 'control_role'))
  await t.stop()
})
