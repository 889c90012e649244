import assert from 'node:assert/strict'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { payloadText } from '#kernel/events/payload.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import type { TestService } from './harness.ts'
import { startLoopbackServer } from './loopback-server.ts'

/** A webhook to add directly to the table. */
export type AddedWebhook = {
  readonly url: string
  readonly routeKey?: string
  readonly clientName?: string | null
  readonly timeoutMs?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly isActive?: boolean
}

export const newSecret = (): string => `whsec_${secureRandom(32).toString('base64')}`

/** Adds a webhook and returns its id and secret. */
export async function addWebhook(kernel: Kernel, added: AddedWebhook) {
  const now = kernel.now()
  const id = uuidv7(now, secureRandom)
  const secret = newSecret()
  await kernel.db
    .insertInto('webhook')
    .values({
      id,
      url: added.url,
      clientName: added.clientName === undefined ? 'default' : added.clientName,
      routeKeys: [added.routeKey ?? 'gateway_insert'],
      timeoutMs: added.timeoutMs ?? 5_000,
      isActive: added.isActive ?? true,
      sealedSecret: kernel.secrets.seal('webhook-secret', secret, id),
      sealedHeaders: kernel.secrets.seal('webhook-headers', JSON.stringify(added.headers ?? {}), id),
      createdAt: now,
      updatedAt: now,
    })
    .execute()
  await kernel.coherence.settle()
  return { id, secret }
}

/** Writes events for a webhook into the outbox, due now; returns their ids. */
export async function addEvents(kernel: Kernel, webhookId: string, count = 1): Promise<string[]> {
  const at = kernel.now()
  const data = { client: 'default', request_id: null, table: 'public.notes', affected_rows: 1 }
  const events = Array.from({ length: count }, () => {
    const id = uuidv7(at, secureRandom)
    const body = payloadText({ id, name: 'gateway_insert', at, data, actor: { kind: 'admin_key', id: null } })
    return { id, routeKey: 'gateway_insert', body, createdAt: at }
  })
  await kernel.db.insertInto('webhookEvent').values(events).execute()
  const deliveries = events.map(({ id: eventId }) => ({
    id: uuidv7(at, secureRandom),
    ...{ webhookId, eventId, nextAttemptAt: at, createdAt: at },
  }))
  await kernel.db.insertInto('webhookDelivery').values(deliveries).execute()
  return events.map(({ id }) => id)
}

export type ReceivedEvent = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly id: string
}

/** An endpoint on 127.0.0.1 that keeps what it receives, and answers 204 or as `answer` does. */
export async function startReceiver(
  answer: (response: ServerResponse, event: ReceivedEvent) => void = (response) =>
    response.writeHead(204).end(),
) {
  const received: ReceivedEvent[] = []
  const server = await startLoopbackServer(async (request, response) => {
    const { headers, url: path = '' } = request
    const event = { path, headers, body: await text(request), id: String(headers['webhook-id']) }
    received.push(event)
    answer(response, event)
  })
  return { ...server, received }
}

/** The event, verified by the official package; throws otherwise. */
export const verified = (secret: string, { body, headers }: ReceivedEvent): unknown =>
  new Webhook(secret).verify(body, headers as Record<string, string>) // each of the three headers comes once

/** The header of every request about webhooks. */
export const FOR_CLIENT = { headers: { 'x-service-client': 'default' } }
export const ENDPOINT = 'https://hooks.example.com/in'

/** Requests of the operator about webhooks. */
export function webhookRequests({ admin }: Pick<TestService, 'admin'>) {
  const make = (body: object) => admin.post('/admin/webhooks', { url: ENDPOINT, ...body }, FOR_CLIENT)
  return {
    make,
    /** Makes a webhook and returns its id. */
    async made(body: object): Promise<string> {
      const answer = await make(body)
      assert.equal(answer.status, 201, answer.text)
      return answer.body.data.id
    },
    at: (id: string, more = '') => `/admin/webhooks/${id}${more}`,
  }
}
