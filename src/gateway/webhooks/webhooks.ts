import type { Clients } from '#databases/clients/clients.ts'
import { parseJson } from '#databases/request/json.ts'
import type { Json } from '#databases/request/request.ts'
import type { Action } from '#kernel/audit/actions.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { unknownClient } from '../called-client.ts'
import { fail } from '../errors.ts'
import { isStanding } from '../standing-clients.ts'
import { acceptableFilter } from './filter/filter.ts'
import { acceptableHeaders } from './headers.ts'
import {
  deactivateWebhooksOf,
  deleteWebhook,
  findWebhook,
  insertWebhook,
  lockWebhook,
  replaceSecret,
  updateWebhook,
  type Webhook,
} from './store.ts'
import { fullTableName, isOfUsers, requireSubscription } from './subscription.ts'

export type { Webhook }

export type WebhookChange = {
  readonly client_name?: string | null
  readonly route_key?: string
  readonly table_name?: string | null
  readonly url?: string
  readonly description?: string | null
  readonly is_active?: boolean
  readonly headers?: Readonly<Record<string, string>> | null
  /** Conditions (gateway.md 4). */
  readonly filter?: unknown
  readonly timeout_ms?: number
}
export type NewWebhook = WebhookChange & {
  readonly route_key: string
  readonly url: string
  readonly secret?: string
}

/** A webhook with its secret, which is shown only now. */
export type IssuedWebhook = { readonly webhook: Webhook; readonly secret: string }

export const DEFAULT_TIMEOUT = 15_000
const DAY = 86_400_000

/** Makes a webhook. When it resolves, every process sends it the events that follow. */
export async function createWebhook(
  kernel: Kernel,
  clients: Clients,
  asked: NewWebhook,
  calledClient: string,
): Promise<IssuedWebhook> {
  const now = kernel.now()
  const id = uuidv7(now, kernel.random)
  const secret = acceptableSecret(kernel, asked.secret)
  const clientName = asked.client_name ?? (isOfUsers(asked.route_key) ? null : calledClient)
  const fields = await acceptableFields(kernel, clients, id, { ...asked, client_name: clientName })
  const { routeKey = asked.route_key, tableName = null, filter = null, url = asked.url } = fields
  requireSubscription({ routeKey, clientName, tableName, filter })
  const webhook = {
    ...{ timeoutMs: DEFAULT_TIMEOUT, ...fields, id, routeKey, clientName, url },
    sealedSecret: kernel.secrets.seal('webhook-secret', secret, id),
    createdAt: now,
    updatedAt: now,
  }
  const created = await atomically(kernel, async (kernel) => {
    await requireClient(kernel, clients, clientName)
    await record(kernel, 'webhook.created', webhook)
    return insertWebhook(kernel.db, webhook)
  })
  await kernel.coherence.settle()
  return { webhook: created, secret }
}

/** Changes a webhook. When it resolves, all processes use the new version. */
export async function changeWebhook(
  kernel: Kernel,
  clients: Clients,
  id: string,
  change: WebhookChange,
): Promise<Webhook> {
  const fields = await acceptableFields(kernel, clients, id, change)
  const changed = await atomically(kernel, async (kernel) => {
    const former = await lockWebhook(kernel.db, id)
    if (former === undefined) throw fail('webhook_not_found')
    const present = { ...former, ...fields }
    requireSubscription(present)
    if (fields.clientName !== undefined || fields.isActive === true)
      await requireClient(kernel, clients, present.clientName)
    await record(kernel, 'webhook.updated', present, Object.keys(change))
    const webhook = await updateWebhook(kernel.db, id, { ...fields, updatedAt: kernel.now() })
    if (webhook === undefined) throw fail('webhook_not_found')
    return webhook
  })
  await kernel.coherence.settle()
  return changed
}

/** Deletes a webhook. When it resolves, no event is written for it. */
export async function removeWebhook(kernel: Kernel, id: string): Promise<void> {
  await atomically(kernel, async (kernel) => {
    const webhook = await lockWebhook(kernel.db, id)
    if (webhook === undefined) throw fail('webhook_not_found')
    await deleteWebhook(kernel.db, id, kernel.now())
    await record(kernel, 'webhook.removed', webhook)
  })
  await kernel.coherence.settle()
}

/** Gives a webhook a new secret. For a day, deliveries are signed with both. */
export async function rotateSecret(kernel: Kernel, id: string): Promise<IssuedWebhook> {
  const now = kernel.now()
  const secret = newSecret(kernel)
  const sealed = kernel.secrets.seal('webhook-secret', secret, id)
  const rotated = await atomically(kernel, async (kernel) => {
    const until = new Date(now.getTime() + DAY)
    const webhook = await replaceSecret(kernel.db, id, { sealed, until, now })
    if (webhook === undefined) throw fail('webhook_not_found')
    await record(kernel, 'webhook.secret_rotated', webhook)
    return webhook
  })
  await kernel.coherence.settle()
  return { webhook: rotated, secret }
}

export async function existingWebhook(kernel: Kernel, id: string): Promise<Webhook> {
  const found = await findWebhook(kernel.db, id)
  if (found === undefined) throw fail('webhook_not_found')
  return found
}

/** For a client that was removed: another client of its name may be another database. */
export const retireWebhooks = ({ db, now }: Kernel, clientName: string): Promise<void> =>
  deactivateWebhooksOf(db, clientName, { reason: 'Its client was removed', now: now() })

async function requireClient(kernel: Kernel, clients: Clients, name: string | null): Promise<void> {
  if (name !== null && !(await isStanding(kernel, clients, name))) throw unknownClient()
}

/** The names of the headers that are sent with each delivery. */
export function headersOf(
  { secrets }: Kernel,
  { id, sealedHeaders }: Webhook,
): Readonly<Record<string, string>> {
  const opened = sealedHeaders === null ? undefined : secrets.open('webhook-headers', sealedHeaders, id)
  return opened === undefined ? {} : JSON.parse(opened)
}

export const filterOf = ({ filter }: Webhook): Json => (filter === null ? null : parseJson(filter))

type Fields = Partial<
  Pick<
    Webhook,
    'clientName' | 'routeKey' | 'tableName' | 'url' | 'description' | 'isActive' | 'sealedHeaders'
  > &
    Pick<Webhook, 'filter' | 'timeoutMs' | 'disabledReason' | 'failingSince' | 'consecutiveFailures'>
>

/** The given fields as columns. Throws when one is not valid by itself. */
async function acceptableFields(
  kernel: Kernel,
  clients: Clients,
  id: string,
  {
    client_name,
    route_key,
    table_name,
    url,
    description,
    is_active,
    headers,
    filter,
    timeout_ms,
  }: WebhookChange,
): Promise<Fields> {
  if (typeof client_name === 'string' && (await clients.find(client_name)) === undefined)
    throw unknownClient()
  return {
    ...(client_name !== undefined && { clientName: client_name }),
    ...(route_key !== undefined && { routeKey: route_key }),
    ...(table_name !== undefined && { tableName: table_name === null ? null : fullTableName(table_name) }),
    ...(url !== undefined && { url: acceptableUrl(kernel, url) }),
    ...(description !== undefined && { description }),
    ...(is_active !== undefined && { isActive: is_active }),
    // Activated again, it starts without the failures that have deactivated it.
    ...(is_active === true && { disabledReason: null, failingSince: null, consecutiveFailures: 0 }),
    ...(headers !== undefined && { sealedHeaders: sealedHeaders(kernel, id, headers ?? {}) }),
    ...(filter !== undefined && { filter: acceptableFilter(kernel, filter) }),
    ...(timeout_ms !== undefined && { timeoutMs: timeout_ms }),
  }
}

/** The URL as it is requested. Its host is looked up and judged again at each connect. */
function acceptableUrl({ outbound }: Kernel, url: string): string {
  const refusal = outbound.refusal(url)
  const parsed = URL.parse(url)
  if (refusal === undefined && parsed !== null) return parsed.href
  throw fail('invalid_webhook_url', {
    message: `url is refused: ${refusal ?? 'it is not a URL'}`,
    details: { field: 'url' },
  })
}

function sealedHeaders(
  { secrets }: Kernel,
  id: string,
  given: Readonly<Record<string, string>>,
): string | null {
  const headers = acceptableHeaders(given)
  return headers === undefined ? null : secrets.seal('webhook-headers', JSON.stringify(headers), id)
}

/** Of the Standard Webhooks specification: 24 to 64 bytes in base64. */
function acceptableSecret(kernel: Kernel, given: string | undefined): string {
  if (given === undefined) return newSecret(kernel)
  const bytes = Buffer.from(given.slice(PREFIX.length), 'base64')
  const isBase64 = given === `${PREFIX}${bytes.toString('base64')}`
  if (isBase64 && bytes.length >= 24 && bytes.length <= 64) return given
  throw fail('invalid_webhook', {
    message: `secret must be ${PREFIX} and the base64 of 24 to 64 bytes`,
    details: { field: 'secret' },
  })
}

const PREFIX = 'whsec_'
const newSecret = ({ random }: Kernel): string => `${PREFIX}${random(32).toString('base64')}`

const record = (
  kernel: Kernel,
  action: Extract<Action, `webhook.${string}`>,
  { id, clientName, routeKey }: Pick<Webhook, 'id' | 'clientName' | 'routeKey'>,
  fields?: readonly string[],
): Promise<void> =>
  recordAct(kernel, action, {
    targetId: id,
    ...(clientName !== null && { clientName }),
    details: { route_key: routeKey, ...(fields !== undefined && { fields }) },
  })
