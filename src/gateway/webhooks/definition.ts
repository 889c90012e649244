import type { Clients } from '#databases/clients/clients.ts'
import { isSigningSecret, SECRET_PREFIX } from '#kernel/http/outbound/webhook-signature.ts'
import { testReceiverUrl } from '#kernel/http/test-receiver.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { unknownClient } from '../caller/called-client.ts'
import { fail } from '../errors.ts'
import { acceptableFilter } from './filter/filter.ts'
import { sealHeaders } from './headers.ts'
import { NOT_FAILING, type Webhook } from './store.ts'
import { fullTableName, refused } from './subscription.ts'

export type WebhookChange = {
  readonly client_name?: string | null
  /** One event, or `route_keys` for several. */
  readonly route_key?: string | null
  readonly route_keys?: string[]
  readonly table_name?: string | null
  readonly url?: string
  readonly description?: string | null
  readonly is_active?: boolean
  readonly headers?: Readonly<Record<string, string>> | null
  /** Conditions (gateway.md 4). */
  readonly filter?: unknown
  readonly timeout_ms?: number
  readonly secret?: string
}
export type NewWebhook = WebhookChange & { readonly url: string }

export const DEFAULT_TIMEOUT = 15_000

/** The given fields as columns. Throws when one is not valid by itself. */
export async function columnsOf(
  kernel: Kernel,
  clients: Clients,
  id: string,
  given: WebhookChange,
): Promise<Columns> {
  const { client_name: clientName, table_name: table, is_active: isActive } = given
  const routeKeys = routeKeysOf(given)
  if (typeof clientName === 'string' && (await clients.find(clientName)) === undefined) throw unknownClient()
  return {
    ...(clientName !== undefined && { clientName }),
    ...(routeKeys !== undefined && { routeKeys }),
    ...(table !== undefined && { tableName: table === null ? null : fullTableName(table) }),
    ...(given.url !== undefined && { url: acceptableUrl(kernel, given.url) }),
    ...(given.description !== undefined && { description: given.description }),
    ...(isActive !== undefined && { isActive }),
    // Activated again, it starts without the failures that have deactivated it.
    ...(isActive === true && { disabledReason: null, ...NOT_FAILING }),
    ...(given.headers !== undefined && { sealedHeaders: sealHeaders(kernel, id, given.headers ?? {}) }),
    ...(given.filter !== undefined && { filter: acceptableFilter(kernel, given.filter) }),
    ...(given.timeout_ms !== undefined && { timeoutMs: given.timeout_ms }),
  }
}

/** Undefined when neither member is given. */
export function routeKeysOf({ route_key: one, route_keys: several }: WebhookChange): string[] | undefined {
  if (several === undefined) return typeof one === 'string' ? [one] : undefined
  // A record has both members.
  if (typeof one === 'string' && (several.length > 1 || several[0] !== one))
    throw refused('route_keys', 'route_key and route_keys contradict each other', 'Leave one of them out')
  return several
}

/** Nothing else of a webhook comes from an operator. */
type Columns = Partial<
  Omit<
    Webhook,
    | 'id'
    | 'sealedSecret'
    | 'sealedFormerSecrets'
    | 'formerSecretsUntil'
    | 'createdAt'
    | 'createdBy'
    | 'reachChangedAt'
    | 'updatedAt'
    | 'deletedAt'
  >
>

/** The URL as it is requested. Its host is looked up and judged again at each connect. */
function acceptableUrl(kernel: Kernel, url: string): string {
  const receiver = testReceiverUrl(kernel)
  const refusal = kernel.outbound.refusal(url, receiver)
  const parsed = URL.parse(url)
  if (refusal === undefined && parsed !== null) return parsed.href
  throw fail('invalid_webhook_url', {
    message: `url is refused: ${refusal ?? 'it is not a URL'}`,
    ...(refusal !== undefined && { hint: onThisMachine(receiver) }),
    details: { field: 'url' },
  })
}

const onThisMachine = (receiver: string | undefined): string =>
  `While you develop, a receiver on this machine needs outbound.allow_http: true and outbound.allow_networks: [127.0.0.1] in gatehouse.yaml, and a new start${
    receiver === undefined ? '' : `; the test receiver of the service, ${receiver}, needs nothing`
  }`

/** Of the Standard Webhooks specification: 24 to 64 bytes in base64. */
export function acceptableSecret(kernel: Kernel, given: string | undefined): string {
  if (given === undefined) return newSecret(kernel)
  if (isSigningSecret(given)) return given
  throw fail('invalid_webhook', {
    message: `secret must be ${SECRET_PREFIX} and the base64 of 24 to 64 bytes`,
    details: { field: 'secret' },
  })
}

export const newSecret = ({ random }: Kernel): string => `${SECRET_PREFIX}${random(32).toString('base64')}`
