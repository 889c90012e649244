import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '#kernel/db/connect.ts'
import { actor, testClock, testService } from '#test/harness.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { addEvents, addWebhook } from '#test/webhooks.ts'
import { replayStep } from './replay.ts'
import { hastenLateDeliveries, pruneDeliveries } from './retention.ts'

const DAY = 86_400_000
const clock = testClock()
const t = await testService({ config: { outbound: TO_LOOPBACK }, clock })
const { kernel } = t.service
const { db } = kernel
const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'default' })

const deliveriesOf = async (id: string, query = '') =>
  (await admin.get(`/admin/webhooks/${id}/deliveries${query}`)).body.data

const eventCount = async () =>
  Number(
    (
      await db
        .selectFrom('webhookEvent')
        .select(({ fn }) => fn.countAll().as('n'))
        .executeTakeFirstOrThrow()
    ).n,
  )

test('events are kept for 30 days, and deliveries of a removed webhook go at once', async () => {
  // Those of active webhooks are kept until they are delivered.
  await db.updateTable('webhook').set({ isActive: false }).execute()
  const { id } = await addWebhook(kernel, { url: 'http://127.0.0.1:1', isActive: false })
  await addEvents(kernel, id, 5)
  clock.advance(29.9 * DAY)
  const { id: removed } = await addWebhook(kernel, { url: 'http://127.0.0.1:1', isActive: false })
  await addEvents(kernel, removed, 2)
  await pruneDeliveries(kernel, 10_000)
  assert.equal((await deliveriesOf(id)).total, 5)
  clock.advance(0.2 * DAY)
  await admin.send('DELETE', `/admin/webhooks/${removed}`)
  await pruneDeliveries(kernel, 10_000)
  assert.equal((await deliveriesOf(id)).total, 0)
  assert.equal(await eventCount(), 2, 'their webhook is removed, but they are new')
  const rows = () => db.selectFrom('webhook').select('id').where('id', '=', removed).execute()
  assert.equal((await rows()).length, 1)
  clock.advance(1.1 * DAY)
  await pruneDeliveries(kernel, 10_000)
  assert.equal((await rows()).length, 0)
})

/** Begins something while a transaction that has done `first` is open; it may have to wait for its end. */
async function beside(first: (db: Db) => Promise<unknown>, second: () => Promise<unknown>): Promise<void> {
  const { begun } = await db.transaction().execute(async (db) => {
    await first(db)
    const begun = second()
    await Promise.race([begun, sleep(500)])
    return { begun }
  })
  await begun
}

test('a delivery that is made due again while old ones are pruned stays', async () => {
  const { id } = await addWebhook(kernel, { url: 'http://127.0.0.1:1' })
  await addEvents(kernel, id)
  await db.updateTable('webhookDelivery').set({ status: 'failed', nextAttemptAt: null }).execute()
  clock.advance(31 * DAY)
  const failed = { webhookId: id, status: 'failed', since: new Date(0) } as const
  await beside(
    (db) => replayStep({ ...kernel, db }, failed, undefined),
    () => pruneDeliveries(kernel, 10_000),
  )
  assert.equal((await deliveriesOf(id, '?status=retrying')).total, 1)
})

test('a delivery that ends while late ones are made due stays as it is', async () => {
  const { id } = await addWebhook(kernel, { url: 'http://127.0.0.1:1' })
  await addEvents(kernel, id)
  const late = new Date(kernel.now().getTime() + 300 * DAY)
  await db.updateTable('webhookDelivery').set({ nextAttemptAt: late }).where('webhookId', '=', id).execute()
  const ended = { status: 'succeeded', nextAttemptAt: null } as const
  await beside(
    (db) => db.updateTable('webhookDelivery').set(ended).where('webhookId', '=', id).execute(),
    () => hastenLateDeliveries(kernel, 100),
  )
  const [{ next_attempt_at: next }] = (await deliveriesOf(id)).deliveries
  assert.equal(next, null)
})
