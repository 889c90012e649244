import type { Clients } from '#databases/clients/clients.ts'
import { fail } from '#gateway/errors.ts'
import type { Page } from '#gateway/pagination.ts'
import { actAsOperator } from '#identity/act.ts'
import { tell } from '#identity/tell.ts'
import { totalBeside } from '#kernel/db/total.ts'
import { examplePayload } from '#kernel/events/documented-events.ts'
import { eventsOf } from '#kernel/events/route-keys.ts'
import { edge, retryAfter } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { createSemaphore } from '#kernel/semaphore.ts'
import { attemptDelivery } from '../delivery/attempt.ts'
import { type Endpoint, openEndpoint, UnreadableEndpoint } from '../delivery/endpoint.ts'
import type { DeliveryWorkers } from '../delivery/workers.ts'
import { endOfFormer, expectToHold, expectToHoldFormer, isHeld } from '../reach.ts'
import type { EndpointRow, Webhook } from '../store.ts'
import { existingWebhook } from '../webhooks.ts'
import { type ReplaySelection, type ReplayStep, replayStep } from './replay.ts'
import {
  countDeliveries,
  findDelivery,
  insertFinishedDelivery,
  type LoggedDelivery,
  listDeliveries,
  restartDelivery,
} from './store.ts'

export async function deliveriesOf(
  kernel: Kernel,
  clients: Clients,
  webhookId: string,
  { status, page }: { readonly status: string | undefined; readonly page: Page },
) {
  const { db } = kernel
  const webhook = await existingWebhook(kernel, webhookId)
  const [found, counted, sees] = await Promise.all([
    listDeliveries(db, { webhookId, status }, { ...page, limit: page.limit + 1 }),
    countDeliveries(db, { webhookId, status }),
    sightOf(kernel, clients, webhook),
  ])
  const deliveries = found
    .slice(0, page.limit)
    .map((each) => (sees(each) ? each : { ...each, responseBody: null }))
  return { deliveries, ...totalBeside(counted, page, found.length) }
}

/** A delivery with the body that was sent; null, as its answer, for who may not read what the webhook sends. */
export async function sentDelivery(kernel: Kernel, clients: Clients, webhookId: string, id: string) {
  const webhook = await existingWebhook(kernel, webhookId)
  const found = await findDelivery(kernel.db, webhookId, id)
  if (found === undefined) throw fail('delivery_not_found')
  const sees = await sightOf(kernel, clients, webhook)
  return sees(found)
    ? { ...found, requestBody: found.body }
    : { ...found, requestBody: null, responseBody: null }
}

/** Which deliveries of the webhook the caller may read. */
async function sightOf(kernel: Kernel, clients: Clients, webhook: Webhook) {
  const [isSeen, isFormerSeen] = await Promise.all([
    isHeld(() => expectToHold(kernel, clients, webhook, { goesOn: true })),
    isHeld(() => expectToHoldFormer(kernel, { goesOn: true })),
  ])
  return (delivery: LoggedDelivery) => (isFormer(webhook, delivery) ? isFormerSeen : isSeen)
}

const isFormer = (webhook: Webhook, { createdAt }: Pick<LoggedDelivery, 'createdAt'>): boolean => {
  const end = endOfFormer(webhook)
  return end !== undefined && createdAt <= end
}

type Retry = {
  readonly kernel: Kernel
  readonly clients: Clients
  readonly workers: Pick<DeliveryWorkers, 'wake'>
}

/** Makes a delivery due now, with all its attempts, whether it has succeeded or not. */
export function retryDelivery(
  { kernel, clients, workers }: Retry,
  webhookId: string,
  id: string,
): Promise<LoggedDelivery> {
  return actAsOperator(kernel, async (kernel) => {
    const webhook = await existingWebhook(kernel, webhookId)
    const logged = await findDelivery(kernel.db, webhookId, id)
    if (logged === undefined) throw fail('delivery_not_found')
    if (!webhook.isActive) throw fail('webhook_inactive')
    await expectToHold(kernel, clients, webhook)
    if (isFormer(webhook, logged)) await expectToHoldFormer(kernel)
    const due = await restartDelivery(kernel.db, webhookId, id, kernel.now())
    if (due === undefined) throw fail('delivery_in_flight')
    await tell(kernel, 'webhook.delivery_retried', { targetId: webhookId, details: { deliveryId: id } })
    kernel.afterCommit(() => workers.wake([webhookId]))
    return { ...logged, ...due }
  })
}

/** One step of a replay, as a request makes it: the first deliveries after `after`. */
export function replaySome(
  { kernel, clients, workers }: Retry,
  selection: ReplaySelection,
  after: string | undefined,
): Promise<ReplayStep> {
  const { webhookId } = selection
  return replayStep(kernel, selection, after, async (kernel, deliveries) => {
    const webhook = await existingWebhook(kernel, webhookId)
    if (!webhook.isActive) throw fail('webhook_inactive')
    await expectToHold(kernel, clients, webhook)
    if (deliveries.some((delivery) => isFormer(webhook, delivery))) await expectToHoldFormer(kernel)
    kernel.afterCommit(() => workers.wake([webhookId]))
  })
}

/** Test deliveries of this process at once. */
const MAX_TESTS = 10

type SendTest = (kernel: Kernel, clients: Clients, webhookId: string) => Promise<LoggedDelivery>

/**
 * Sends the example of an event, marked as a test, and writes the delivery into the log. It is made once, also to an inactive webhook, and
 * does not count for the health of the webhook.
 */
export function createTestDeliveries(): SendTest {
  const semaphore = createSemaphore(MAX_TESTS, { max: 0, refusal: tooManyTests })
  return async (kernel, clients, webhookId) => {
    const webhook = await existingWebhook(kernel, webhookId)
    await expectToHold(kernel, clients, webhook)
    await kernel.limits.consume('webhook_test', webhookId)
    return semaphore.run(() => sendTest(kernel, webhook))
  }
}

const tooManyTests = () =>
  edge('service_unavailable', {
    message: 'Too many test deliveries at once; try again in a moment',
    headers: retryAfter(1),
  })

async function sendTest(kernel: Kernel, webhook: Webhook): Promise<LoggedDelivery> {
  const { id: webhookId, routeKeys } = webhook
  const at = kernel.now()
  const [name = 'gateway_insert'] = eventsOf(routeKeys)
  const eventId = uuidv7(at, kernel.random)
  const payload = { ...examplePayload(name), id: eventId, timestamp: at.toISOString(), test: true }
  const event = { id: eventId, routeKey: name, body: JSON.stringify(payload) }
  const endpoint = readable(kernel, webhook)
  const id = uuidv7(at, kernel.random)
  // Before it is sent: the process may end during the request.
  await tell(kernel, 'webhook.tested', { targetId: webhookId, details: { deliveryId: id } })
  const { isSuccess, waitAsked: _, ...result } = await attemptDelivery(kernel, endpoint, event)
  const delivery = {
    ...result,
    id,
    webhookId,
    eventId,
    status: isSuccess ? 'succeeded' : 'failed',
    attempt: 1,
    nextAttemptAt: null,
    claimedUntil: null,
    createdAt: at,
  }
  await insertFinishedDelivery(kernel.db, event, delivery)
  return { ...delivery, routeKey: name }
}

function readable(kernel: Kernel, row: EndpointRow): Endpoint {
  try {
    return openEndpoint(kernel, row)
  } catch (error) {
    if (error instanceof UnreadableEndpoint) throw fail('webhook_unreadable')
    throw error
  }
}
