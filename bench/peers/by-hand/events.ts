/**
 * A process with the kernel and its delivery workers on an empty database: emits events into the durable outbox, or sends bare signed POSTs of the same bodies.
 * `fork('bench/peers/by-hand/events.ts', [DATABASE_URL, RECEIVER_URL])`; reports that it is ready, then an `EventsDone` for each `EventsOrder`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_IN_FLIGHT } from '#gateway/webhooks/delivery/places.ts'
import { createDeliveryWorkers } from '#gateway/webhooks/delivery/workers.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { migrate } from '#kernel/db/migrate.ts'
import { payloadText } from '#kernel/events/payload.ts'
import { EVENTS } from '#kernel/events.ts'
import { signedHeaders } from '#kernel/http/outbound/webhook-signature.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { startKernel } from '#kernel/start.ts'
import { addWebhook } from '#test/webhooks.ts'

export type EventsOrder = { readonly kind: 'durable' | 'bare'; readonly events: number }
export type EventsDone = { readonly seconds: number }

/** Operations of callers at once. */
const CALLERS = 64
const ACTOR = { kind: 'admin_key', id: null } as const
const DATA = { ...EVENTS.gateway_insert.example, client: 'default' }

const [controlUrl = '', receiverUrl = ''] = process.argv.slice(2)
await migrate(controlUrl)
const { kernel } = await startKernel({
  config: defaultConfig({ outbound: { allow_http: true, allow_networks: ['127.0.0.1'] } }),
  controlUrl,
  secrets: createSecrets(secureRandom(32).toString('hex'), secureRandom),
  log: createLog({ level: 'warn', format: 'pretty' }),
})
createDeliveryWorkers(kernel).start()
const webhook = await addWebhook(kernel, { url: receiverUrl })
process.on('disconnect', () => process.exit())
process.on('message', async ({ kind, events }: EventsOrder) => {
  const began = performance.now()
  await (kind === 'durable' ? deliver(kernel, events) : post(kernel, events))
  process.send?.({ seconds: (performance.now() - began) / 1_000 } satisfies EventsDone)
})
process.send?.('ready')

async function deliver(kernel: Kernel, events: number): Promise<void> {
  await repeat(CALLERS, events, () => emit(kernel, 'gateway_insert', DATA))
  while (await areSomeWaiting(kernel)) await sleep(10)
}

/** One look into the index, so that the wait is no work of the database. */
async function areSomeWaiting({ db }: Kernel): Promise<boolean> {
  const first = await db
    .selectFrom('webhookDelivery')
    .select('id')
    .where('webhookId', '=', webhook.id)
    .where('nextAttemptAt', 'is not', null)
    .orderBy('nextAttemptAt')
    .limit(1)
    .executeTakeFirst()
  return first !== undefined
}

async function post({ outbound, now, random }: Kernel, events: number): Promise<void> {
  const secret = `whsec_${random(32).toString('base64')}`
  await repeat(MAX_IN_FLIGHT, events, async () => {
    const at = now()
    const id = uuidv7(at, random)
    const body = payloadText({ id, name: 'gateway_insert', at, data: DATA, actor: ACTOR })
    const timestamp = Math.floor(at.getTime() / 1_000)
    const headers = {
      'content-type': 'application/json',
      ...signedHeaders([secret], { id, timestamp, body }),
    }
    await outbound.send(receiverUrl, { method: 'POST', headers, body, timeout: 15_000, maxBytes: 4_096 })
  })
}

async function repeat(atOnce: number, times: number, work: () => Promise<void>): Promise<void> {
  let begun = 0
  const run = async () => {
    while (begun++ < times) await work()
  }
  await Promise.all(Array.from({ length: atOnce }, run))
}
