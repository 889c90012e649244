import type { IncomingHttpHeaders } from 'node:http'
import { isSignedBy } from '#kernel/http/outbound/webhook-signature.ts'
import { testReceiverUrl } from '#kernel/http/test-receiver.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { openEndpoint, signingSecrets, UnreadableEndpoint } from '../delivery/endpoint.ts'
import { type EndpointRow, listEndpointsAt } from '../store.ts'

/** A request as the receiver got it. */
export type Received = {
  readonly id: string
  readonly receivedAt: Date
  readonly headers: { readonly name: string; readonly value: string }[]
  readonly body: string
  /** The webhook whose secret has signed it; null: none that has the address of the receiver. */
  readonly webhookId: string | null
  readonly signature: 'verified' | 'wrong' | 'missing'
}

/** Webhooks of this process that were received, the newest first, in memory alone. */
type TestReceiver = {
  receive(headers: IncomingHttpHeaders, body: Buffer): Promise<Received>
  list(): readonly Received[]
}

const MOST = 100
/** Characters of all bodies. */
const MOST_TEXT = 8 * 1024 * 1024

export function createTestReceiver(kernel: Kernel): TestReceiver {
  let received: readonly Received[] = []
  return {
    async receive(headers, body) {
      const id = uuidv7(kernel.now(), kernel.random)
      const judged = await judge(kernel, headers, body)
      const text = body.toString('utf8')
      const one = { id, receivedAt: kernel.now(), headers: listed(headers), body: text, ...judged }
      received = bounded([one, ...received])
      return one
    },
    list: () => received,
  }
}

/** The newest one always, and those before it as far as there is room. */
function bounded(all: readonly Received[]): readonly Received[] {
  let size = 0
  const fitting = all.findIndex(({ body }, index) => {
    size += body.length
    return index >= MOST || (index > 0 && size > MOST_TEXT)
  })
  return fitting === -1 ? all : all.slice(0, fitting)
}

const listed = (headers: IncomingHttpHeaders): Received['headers'] =>
  Object.entries(headers).map(([name, value = '']) => ({
    name,
    value: Array.isArray(value) ? value.join(', ') : value,
  }))

/** Seconds, as the Standard Webhooks specification advises: an older request may be a repeated one. */
const TOLERANCE = 300

/** As a receiver does that knows the secrets of its webhooks. */
async function judge(
  kernel: Kernel,
  headers: IncomingHttpHeaders,
  body: Buffer,
): Promise<Pick<Received, 'webhookId' | 'signature'>> {
  const { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signatures } = headers
  if (typeof id !== 'string' || typeof time !== 'string' || typeof signatures !== 'string')
    return { webhookId: null, signature: 'missing' }
  const now = kernel.now()
  const timestamp = Number(time)
  const isRecent = Math.abs(now.getTime() / 1_000 - timestamp) <= TOLERANCE
  const signer = (await listEndpointsAt(kernel.db, testReceiverUrl(kernel) ?? '')).find((row) =>
    secretsOf(kernel, row, now).some((secret) => isSignedBy(secret, signatures, { id, timestamp, body })),
  )
  return { webhookId: signer?.id ?? null, signature: signer !== undefined && isRecent ? 'verified' : 'wrong' }
}

/** None of one whose secret was sealed under another SERVICE_SECRET. */
function secretsOf(kernel: Kernel, row: EndpointRow, now: Date): readonly string[] {
  try {
    return signingSecrets(openEndpoint(kernel, row), now)
  } catch (error) {
    if (error instanceof UnreadableEndpoint) return []
    throw error
  }
}
