import { fail } from '#gateway/errors.ts'
import type { Page } from '#gateway/pagination.ts'
import { actAsOperator } from '#identity/act.ts'
import { tell } from '#identity/tell.ts'
import { examplePayload } from '#kernel/events/documented-events.ts'
import { eventsOf } from '#kernel/events/route-keys.ts'
import { edge, retryAfter } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { createSemaphore } from '#kernel/semaphore.ts'
import { attemptDelivery } from '../delivery/attempt.ts'
import { type Endpoint, openEndpoint, UnreadableEndpoint } from '../delivery/endpoint.ts'
import type { DeliveryWorkers } from '../delivery/workers.ts'
import { type EndpointRow, findEndpoint } from '../store.ts'
import {
  countDeliveries,
  findDelivery,
  insertFinishedDelivery,
  type LoggedDelivery,
  listDeliveries,
  restartDelivery,
} from './store.ts'

export async function deliveriesOf(
  { db }: Pick<Kernel, 'db'>,
  webhookId: string,
  status: string | undefined,
  page: Page,
) {
  await existingEndpoint({ db }, webhookId)
  const [deliveries, total] = await Promise.all([
    listDeliveries(db, { webhookId, status }, page),
    countDeliveries(db, { webhookId, status }),
  ])
  return { deliveries, total }
}

async function existingEndpoint({ db }: Pick<Kernel, 'db'>, id: string): Promise<EndpointRow> {
  const row = await findEndpoint(db, id)
  if (row === undefined) throw fail('webhook_not_found')
  return row
}

/** Makes a delivery due now, with all its attempts, whether it has succeeded or not. */
export async function retryDelivery(
  kernel: Kernel,
  workers: Pick<DeliveryWorkers, 'wake'>,
  webhookId: string,
  id: string,
): Promise<LoggedDelivery> {
  const { isActive } = await existingEndpoint(kernel, webhookId)
  const logged = await findDelivery(kernel.db, webhookId, id)
  if (logged === undefined) throw fail('delivery_not_found')
  if (!isActive) throw fail('webhook_inactive')
  return actAsOperator(kernel, async (kernel) => {
    const due = await restartDelivery(kernel.db, webhookId, id, kernel.now())
    if (due === undefined) throw fail('delivery_in_flight')
    await tell(kernel, 'webhook.delivery_retried', { targetId: webhookId, details: { deliveryId: id } })
    kernel.afterCommit(() => workers.wake([webhookId]))
    return { ...logged, ...due }
  })
}

/** Test deliveries of this process at once. */
const MAX_TESTS = 10

type SendTest = (kernel: Kernel, webhookId: string) => Promise<LoggedDelivery>

/**
 * Sends the example of an event, marked as a test, and writes the delivery into the log. It is made once, also to an inactive webhook, and
 * does not count for the health of the webhook.
 */
export function createTestDeliveries(): SendTest {
  const semaphore = createSemaphore(MAX_TESTS, { max: 0, refusal: tooManyTests })
  return async (kernel, webhookId) => {
    await kernel.limits.consume('webhook_test', webhookId)
    return semaphore.run(() => sendTest(kernel, webhookId))
  }
}

const tooManyTests = () =>
  edge('service_unavailable', {
    message: 'Too many test deliveries at once; try again in a moment',
    headers: retryAfter(1),
  })

async function sendTest(kernel: Kernel, webhookId: string): Promise<LoggedDelivery> {
  const row = await existingEndpoint(kernel, webhookId)
  const at = kernel.now()
  const [name = 'gateway_insert'] = eventsOf(row.routeKeys)
  const eventId = uuidv7(at, kernel.random)
  const payload = { ...examplePayload(name), id: eventId, timestamp: at.toISOString(), test: true }
  const event = { id: eventId, routeKey: name, body: JSON.stringify(payload) }
  const endpoint = readable(kernel, row)
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
