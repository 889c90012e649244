import { Type } from 'typebox'
import { keepJsonBodies } from '#kernel/http/bodies/body.ts'
import { named } from '#kernel/http/document/components.ts'
import { edge } from '#kernel/http/failures.ts'
import { thisMachine } from '#kernel/http/own-host.ts'
import { Id, Nullable, OneOf, PathId, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import { TEST_RECEIVER, testReceiverUrl } from '#kernel/http/test-receiver.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createTestReceiver, type Received } from './receiver.ts'

const FIELDS = {
  id: Id,
  received_at: Timestamp,
  webhook_id: Nullable(
    Type.String({ format: 'uuid', description: 'The webhook whose secret has signed it; null: none' }),
  ),
  signature: OneOf(['verified', 'wrong', 'missing'], {
    description: 'As a receiver finds it that knows the secret',
  }),
  type: Nullable(Type.String({ description: 'The event; null where the body does not say' })),
}
const ListedWebhook = Type.Object(FIELDS, named('ListedReceivedWebhook'))
const ReceivedWebhook = Type.Object(
  {
    ...FIELDS,
    headers: Type.Array(Type.Object({ name: Type.String(), value: Type.String() }, named('ReceivedHeader'))),
    body: Type.String(),
  },
  named('ReceivedWebhook'),
)

/** A receiver of webhooks on this machine, which needs no server (hasTestReceiver). */
export function testReceiverRoutes(app: App, kernel: Kernel): void {
  const access = thisMachine(kernel)
  const receiver = createTestReceiver(kernel)
  keepJsonBodies(app)
  app.route({
    method: 'POST',
    url: TEST_RECEIVER,
    config: { access },
    schema: {
      operationId: 'receiveWebhook',
      summary: 'Receive a webhook of this service, of any body',
      description: 'Only in development, with one process.',
      response: { 200: Type.Object({ id: Id }) },
    },
    handler: async ({ headers, body }) => {
      const { id } = await receiver.receive(headers, Buffer.isBuffer(body) ? body : Buffer.alloc(0))
      return { id }
    },
  })
  app.route({
    method: 'GET',
    url: TEST_RECEIVER,
    config: { access },
    schema: {
      operationId: 'listReceivedWebhooks',
      summary: 'List the webhooks that the test receiver got, newest first',
      description: 'Only in development, with one process. They are in memory, the newest ones.',
      response: {
        200: Type.Object({
          url: Type.String({ description: 'The address of the receiver, for the url of a webhook' }),
          webhooks: Type.Array(ListedWebhook),
        }),
      },
    },
    handler: async () => ({ url: testReceiverUrl(kernel) ?? '', webhooks: receiver.list().map(shown) }),
  })
  app.route({
    method: 'GET',
    url: `${TEST_RECEIVER}/:id`,
    config: { access, failures: ['not_found'] },
    schema: {
      operationId: 'getReceivedWebhook',
      summary: 'A webhook that the test receiver got, with headers and body',
      params: Type.Object({ id: PathId }),
      response: { 200: ReceivedWebhook },
    },
    handler: async ({ params: { id } }) => {
      const found = receiver.list().find((one) => one.id === id)
      if (found === undefined) throw edge('not_found', { hint: 'The receiver keeps the newest ones alone' })
      const { headers, body } = found
      return { ...shown(found), headers, body }
    },
  })
}

const shown = ({ id, receivedAt, webhookId, signature, body }: Received) => ({
  id,
  received_at: receivedAt,
  webhook_id: webhookId,
  signature,
  type: typeIn(body),
})

/** Characters. Names of events are shorter. */
const MAX_TYPE = 100

function typeIn(body: string): string | null {
  try {
    const { type } = JSON.parse(body)
    return typeof type === 'string' ? type.slice(0, MAX_TYPE) : null
  } catch {
    return null
  }
}
