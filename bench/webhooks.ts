/**
 * Events that one process emits, writes to the outbox and delivers to a local receiver, in comparison to bare signed POSTs of the same bodies by the
 * same process. `node bench/webhooks.ts [rounds]`, on TEST_DATABASE_URL if it is set.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MAX_IN_FLIGHT } from '#gateway/webhooks/delivery/lanes.ts'
import { signedHeaders } from '#gateway/webhooks/delivery/signature.ts'
import { createDeliveryWorkers } from '#gateway/webhooks/delivery/workers.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { migrate } from '#kernel/db/migrate.ts'
import { payloadText } from '#kernel/events/payload.ts'
import { EVENTS } from '#kernel/events.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { startKernel } from '#kernel/start.ts'
import { withClient } from '#test/database.ts'
import { addWebhook } from '#test/webhooks.ts'
import { withFixture } from './fixture.ts'
import { interleaved, printRates, printTarget, type Way } from './rounds.ts'

const ROUNDS = Number(process.argv[2] ?? 5)
/** Events of a round. */
const EVENTS_OF_A_ROUND = 3_000
/** Operations of callers at once. */
const CALLERS = 64
const ENDPOINTS = [1, 8]
const ACTOR = { kind: 'admin_key', id: null } as const
const DATA = { ...EVENTS.gateway_insert.example, client: 'default' }

const bare = (endpoints: number) => `bare signed POSTs, ${endpoints * MAX_IN_FLIGHT} at once`
const durable = (endpoints: number) =>
  `durable outbox, ${endpoints} ${endpoints === 1 ? 'endpoint' : 'endpoints'}`

await withFixture(async ({ controlUrl, describes }) => {
  const serverUrl = process.env.TEST_DATABASE_URL || controlUrl
  const name = `bench_outbox_${secureRandom(4).toString('hex')}`
  await withClient(serverUrl, (client) => client.query(`create database ${name}`))
  const url = new URL(serverUrl)
  url.pathname = name
  try {
    await migrate(url.href)
    await withKernel(url.href, (kernel) => compare(kernel, describes))
  } finally {
    await withClient(serverUrl, (client) => client.query(`drop database ${name} with (force)`))
  }
})

async function withKernel(controlUrl: string, work: (kernel: Kernel) => Promise<void>): Promise<void> {
  const config = defaultConfig({ outbound: { allow_http: true, allow_networks: ['127.0.0.1'] } })
  const secrets = createSecrets(secureRandom(32).toString('hex'), secureRandom)
  const log = createLog({ level: 'warn', format: 'pretty' })
  const { kernel, close } = await startKernel({ config, controlUrl, secrets, log })
  try {
    await work(kernel)
  } finally {
    await close()
  }
}

async function compare(kernel: Kernel, describes: string): Promise<void> {
  const receiver = spawn(process.execPath, [path.join(import.meta.dirname, 'peers/webhook-receiver.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const workers = createDeliveryWorkers(kernel)
  workers.start()
  try {
    const url = await urlOf(receiver)
    const ways: Record<string, Way> = {}
    for (const endpoints of ENDPOINTS) {
      ways[bare(endpoints)] = () => postsPerSecond(kernel, url, endpoints)
      ways[durable(endpoints)] = () => eventsPerSecond(kernel, url, endpoints)
    }
    const rates = await interleaved(ways, ROUNDS)
    console.log(
      `webhooks · ${describes} · ${ROUNDS} × ${EVENTS_OF_A_ROUND} events, ${CALLERS} callers at once`,
    )
    printRates(rates, { unit: 'per second', against: ENDPOINTS.map(bare) })
    for (const endpoints of ENDPOINTS) printTarget(rates, durable(endpoints), bare(endpoints), 0.3)
  } finally {
    await workers.stop(5_000)
    receiver.kill()
  }
}

async function urlOf(receiver: ChildProcess): Promise<string> {
  const [line] = (await once(receiver.stdout ?? receiver, 'data')) as [Buffer] // its port
  return `http://127.0.0.1:${Number(String(line))}`
}

async function postsPerSecond(
  { outbound, now, random }: Kernel,
  url: string,
  endpoints: number,
): Promise<number> {
  const secret = `whsec_${random(32).toString('base64')}`
  return perSecond(endpoints * MAX_IN_FLIGHT, async () => {
    const at = now()
    const id = uuidv7(at, random)
    const body = payloadText({ id, name: 'gateway_insert', at, data: DATA, actor: ACTOR })
    const timestamp = Math.floor(at.getTime() / 1_000)
    const headers = {
      'content-type': 'application/json',
      ...signedHeaders([secret], { id, timestamp, body }),
    }
    await outbound.send(url, { method: 'POST', headers, body, timeout: 15_000, maxBytes: 4_096 })
  })
}

/** From the first event until the outcome of the last one is written. */
async function eventsPerSecond(kernel: Kernel, url: string, endpoints: number): Promise<number> {
  await kernel.db.updateTable('webhook').set({ isActive: false }).execute()
  for (let made = 0; made < endpoints; made++) await addWebhook(kernel, { url })
  const began = performance.now()
  await perSecond(CALLERS, () => emit(kernel, 'gateway_insert', DATA), EVENTS_OF_A_ROUND / endpoints)
  while ((await waiting(kernel)) > 0) await sleep(10)
  return (EVENTS_OF_A_ROUND * 1_000) / (performance.now() - began)
}

async function waiting({ db }: Kernel): Promise<number> {
  const { waiting } = await db
    .selectFrom('webhookDelivery')
    .select(({ fn }) => fn.countAll<string>().as('waiting'))
    .where('nextAttemptAt', 'is not', null)
    .executeTakeFirstOrThrow()
  return Number(waiting)
}

/** Runs the work so often, a number of times at once. */
async function perSecond(
  atOnce: number,
  work: () => Promise<void>,
  times = EVENTS_OF_A_ROUND,
): Promise<number> {
  const began = performance.now()
  let begun = 0
  const run = async () => {
    while (begun++ < times) await work()
  }
  await Promise.all(Array.from({ length: atOnce }, run))
  return (times * 1_000) / (performance.now() - began)
}
