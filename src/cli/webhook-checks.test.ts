import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recurringTable } from '#startup/recurring-work.ts'
import { actor, testClock, testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { addEvents, addWebhook, startReceiver } from '#test/webhooks.ts'
import { webhookFindings } from './webhook-checks.ts'

const DAY = 86_400_000
const clock = testClock()
const t = await testService({ config: { outbound: TO_LOOPBACK }, clock })
const { kernel, deliveries: workers } = t.service
const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'default' })
const findings = async () => (await webhookFindings(kernel.db)).map(({ subject, says }) => [subject, says])

test('the doctor names an endpoint while it fails, and says why the service has set it inactive', async () => {
  let status = 500
  const { url } = await startReceiver((response) => response.writeHead(status).end())
  const { id } = await addWebhook(kernel, { url })
  const { id: healthy } = await addWebhook(kernel, { url: (await startReceiver()).url })
  for (const webhook of [id, healthy]) await addEvents(kernel, webhook)
  await workers.drain()
  const [[subject, failing = ''] = [], ...others] = await findings()
  assert.deepEqual([subject, others], [`webhook ${id}`, []])
  assert.match(failing, /^1 attempt has failed since 20\d\d-.*Z: gatehouse webhooks deliveries /)

  for (let day = 1; day <= 5; day++) {
    clock.advance(1.02 * DAY)
    await addEvents(kernel, id)
    await workers.drain()
  }
  const [[, inactive = ''] = []] = await findings()
  assert.match(
    inactive,
    /^is inactive \(Every attempt has failed since 20\d\d-.*\): PATCH \/admin\/webhooks\//,
  )

  status = 204
  const mended = await admin.send('PATCH', `/admin/webhooks/${id}`, { body: { is_active: true } })
  assert.equal(mended.status, 200)
  assert.deepEqual(await findings(), [])
  status = 410
  await addEvents(kernel, id)
  await workers.drain()
  assert.match((await findings())[0]?.[1] ?? '', /^is inactive \(The endpoint answered 410 Gone\.\)/)
  await admin.send('DELETE', `/admin/webhooks/${id}`)
  assert.deepEqual(await findings(), [])
})

test('the recurring work keeps deliveries of 30 days, and deletes older ones however many there are', async () => {
  const prune = recurringTable(kernel).find(({ name }) => name === 'prune-deliveries')
  const { id } = await addWebhook(kernel, { url: 'http://127.0.0.1:1', isActive: false })
  const total = async () => (await admin.get(`/admin/webhooks/${id}/deliveries?limit=1`)).body.data.total
  await addEvents(kernel, id, 2_010)
  clock.advance(DAY)
  await addEvents(kernel, id, 2)
  clock.advance(28.9 * DAY)
  await prune?.run()
  assert.equal(await total(), 2_012, 'after 29.9 days')
  clock.advance(0.2 * DAY)
  await prune?.run()
  assert.equal(await total(), 2, 'after 30.1 days')
  clock.advance(DAY)
  await prune?.run()
  assert.equal(await total(), 0)
  const events = await kernel.db.selectFrom('webhookEvent').select('id').execute()
  assert.deepEqual(events, [])
})

test('what an active webhook waits for is not pruned, and a clock that is set back delays it by an hour', async () => {
  const work = recurringTable(kernel).find(({ name }) => name === 'prune-deliveries')
  let status = 500
  const { url, received } = await startReceiver((response) => response.writeHead(status).end())
  const { id } = await addWebhook(kernel, { url })
  await addEvents(kernel, id)
  clock.advance(31 * DAY)
  await work?.run()
  assert.equal(await workers.drain(), 1)
  clock.advance(-31 * DAY)
  await work?.run()
  status = 204
  assert.equal(await workers.drain(), 1)
  assert.equal(received.length, 2)
})
