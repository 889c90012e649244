import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { testKernel } from '#test/harness.ts'
import { addEvents, addWebhook } from '#test/webhooks.ts'
import { claimDeliveries, findDueWebhooks } from './store.ts'

const kernel = await testKernel()
const { db } = kernel
const MANY = 500_000

test('claims cost the same beside half a million due deliveries of one webhook', async (t) => {
  const { id: large } = await addWebhook(kernel, { url: 'http://127.0.0.1:1' })
  const { id: small } = await addWebhook(kernel, { url: 'http://127.0.0.1:1' })
  await addEvents(kernel, small, 1_000)
  const requests = [large, small].map((webhookId) => ({ webhookId, free: 10, dueFrom: new Date(0) }))
  /** The least time of a claim and of a look at all webhooks, milliseconds: other work on the machine only adds to the others. */
  const cost = async (): Promise<number> => {
    const times: number[] = []
    for (let round = 0; round < 15; round++) {
      const began = performance.now()
      assert.ok((await findDueWebhooks(db, kernel.now())).some(({ id }) => id === small))
      const claimed = await claimDeliveries(db, kernel.now(), requests)
      times.push(performance.now() - began)
      assert.equal(claimed.filter(({ webhookId }) => webhookId === small).length, 10)
    }
    return Math.min(...times)
  }
  const before = await cost()
  const [event] = await addEvents(kernel, large)
  for (let part = 0; part < MANY; part += 50_000)
    await sql`insert into service.webhook_delivery (id, webhook_id, event_id, next_attempt_at, created_at)
      select gen_random_uuid(), ${large}::uuid, ${event}::uuid, now() - n * interval '1 ms', now() from generate_series(1, 50000) n`.execute(
      db,
    )
  const unanalysed = await cost()
  await sql`analyze service.webhook_delivery`.execute(db)
  const analysed = await cost()
  const scans: number[] = []
  for (let round = 0; round < 5; round++) {
    const began = performance.now()
    await sql`select count(*), max(next_attempt_at) from service.webhook_delivery`.execute(db)
    scans.push(performance.now() - began)
  }
  const whole = Math.min(...scans)
  const costs = `${before.toFixed(1)} ms alone, ${unanalysed.toFixed(1)} ms and ${analysed.toFixed(1)} ms beside ${MANY}; a scan takes ${whole.toFixed(1)} ms`
  t.diagnostic(costs)
  // A scan in each claim would take longer than one scan.
  for (const after of [unanalysed, analysed]) assert.ok(after < Math.max(5 * before, whole / 2), costs)
})
