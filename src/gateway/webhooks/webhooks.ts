import type { Clients } from '#databases/clients/clients.ts'
import { actAsOperator } from '#identity/act.ts'
import { tell, tellChange } from '#identity/tell.ts'
import { changedFields } from '#kernel/audit/changed-fields.ts'
import { creatorOf } from '#kernel/audit/creator.ts'
import type { Failure } from '#kernel/errors.ts'
import { edge, retryAfter } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { fail } from '../errors.ts'
import { requireClient } from '../existing-clients.ts'
import {
  acceptableSecret,
  columnsOf,
  DEFAULT_TIMEOUT,
  type NewWebhook,
  newSecret,
  routeKeysOf,
  type WebhookChange,
} from './definition.ts'
import { endOfFormer, expectToHold, expectToHoldFormer, hasSameReach } from './reach.ts'
import {
  countWebhooks,
  deactivateWebhooksOf,
  deleteWebhook,
  findWebhook,
  hasWaiting,
  insertWebhook,
  lockWebhook,
  replaceSecret,
  updateWebhook,
  type Webhook,
} from './store.ts'
import { isOfUsers, refused, requireSubscription } from './subscription.ts'

/** A webhook with its secret, which is shown only now. */
type IssuedWebhook = { readonly webhook: Webhook; readonly secret: string }

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
  const routeKeys = routeKeysOf(asked)
  if (routeKeys === undefined)
    throw refused(
      'route_key',
      'A webhook needs the event that it is of',
      'Set route_key, or route_keys for several',
    )
  const clientName = asked.client_name ?? (isOfUsers(routeKeys) ? null : calledClient)
  const columns = await columnsOf(kernel, clients, id, { ...asked, client_name: clientName })
  const { tableName = null, filter = null, url = asked.url } = columns
  requireSubscription({ routeKeys, clientName, tableName, filter })
  const webhook = {
    timeoutMs: DEFAULT_TIMEOUT,
    ...columns,
    id,
    routeKeys,
    clientName,
    url,
    sealedSecret: kernel.secrets.seal('webhook-secret', secret, id),
    createdAt: now,
    createdBy: creatorOf(kernel),
    updatedAt: now,
  }
  const created = await actAsOperator(kernel, async (kernel) => {
    if (clientName !== null) await requireClient(kernel, clients, clientName)
    await expectToHold(kernel, clients, { routeKeys, clientName, tableName })
    await tell(kernel, 'webhook.created', actOf(webhook))
    return insertWebhook(kernel.db, webhook)
  })
  return { webhook: created, secret }
}

/** Changes a webhook. When it resolves, all processes use the new version. */
export async function changeWebhook(
  kernel: Kernel,
  clients: Clients,
  id: string,
  change: WebhookChange,
): Promise<Webhook> {
  const columns = await columnsOf(kernel, clients, id, change)
  const secret = change.secret === undefined ? undefined : acceptableSecret(kernel, change.secret)
  return actAsOperator(kernel, async (kernel) => {
    const former = await lockWebhook(kernel.db, id)
    if (former === undefined) throw fail('webhook_not_found')
    const present = { ...former, ...columns }
    if (decidesEvents(columns)) requireSubscription(present)
    requireOwnHeaders(former, columns)
    const needsClient = columns.clientName !== undefined || columns.isActive === true
    if (needsClient && present.clientName !== null) await requireClient(kernel, clients, present.clientName)
    if (!isStopping(change)) await expectToHoldChange(kernel, clients, former, present)
    if (secret !== undefined && secret !== presentSecret(kernel, former)) await putSecret(kernel, id, secret)
    const now = kernel.now()
    const reach = hasSameReach(former, present) ? {} : { reachChangedAt: now }
    const webhook = await updateWebhook(kernel.db, id, { ...columns, ...reach, updatedAt: now })
    if (webhook === undefined) throw fail('webhook_not_found')
    const changed = changedFields<object>(former, webhook, columns)
    await tellChange(kernel, 'webhook.updated', changed, actOf(webhook, Object.keys(change)))
    return webhook
  })
}

/** The session needs the former reach as well: deliveries that wait, and those that are made again, are still of that. */
async function expectToHoldChange(
  kernel: Kernel,
  clients: Clients,
  former: Webhook,
  present: Webhook,
): Promise<void> {
  for (const webhook of [former, present]) await expectToHold(kernel, clients, webhook)
  const end = endOfFormer(former)
  if (end === undefined || present.url === former.url) return
  if (await hasWaiting(kernel.db, former.id, end)) await expectToHoldFormer(kernel)
}

const isStopping = (change: WebhookChange): boolean =>
  change.is_active === false && Object.keys(change).length === 1

/** Otherwise a webhook of an event that a newer version does not have can still be changed, and deactivated. */
const decidesEvents = ({ isActive, routeKeys, clientName, tableName, filter }: Partial<Webhook>): boolean =>
  isActive === true || [routeKeys, clientName, tableName, filter].some((given) => given !== undefined)

/** Deletes a webhook. When it resolves, no event is written for it. */
export async function removeWebhook(kernel: Kernel, id: string): Promise<void> {
  await actAsOperator(kernel, async (kernel) => {
    const webhook = await lockWebhook(kernel.db, id)
    if (webhook === undefined) throw fail('webhook_not_found')
    await deleteWebhook(kernel.db, id, kernel.now())
    await tell(kernel, 'webhook.removed', actOf(webhook))
  })
}

/** Former secrets of a webhook: each is a signature in the header of its deliveries. */
const MAX_FORMER_SECRETS = 5

/** Gives a webhook a new secret. For a day, deliveries are signed with the former one too. */
export async function rotateSecret(kernel: Kernel, clients: Clients, id: string): Promise<IssuedWebhook> {
  const secret = newSecret(kernel)
  const webhook = await actAsOperator(kernel, async (kernel) => {
    const former = await lockWebhook(kernel.db, id)
    if (former === undefined) throw fail('webhook_not_found')
    await expectToHold(kernel, clients, former)
    return putSecret(kernel, id, secret)
  })
  return { webhook, secret }
}

const presentSecret = ({ secrets }: Kernel, { id, sealedSecret }: Webhook): string | undefined =>
  secrets.open('webhook-secret', sealedSecret ?? '', id)

async function putSecret(kernel: Kernel, id: string, secret: string): Promise<Webhook> {
  const now = kernel.now()
  const until = new Date(now.getTime() + DAY)
  const sealed = kernel.secrets.seal('webhook-secret', secret, id)
  const webhook = await replaceSecret(kernel.db, id, { sealed, now, until, max: MAX_FORMER_SECRETS })
  if (webhook === undefined) throw await refusedRotation(kernel, id, now)
  await tell(kernel, 'webhook.secret_rotated', actOf(webhook))
  return webhook
}

async function refusedRotation(kernel: Kernel, id: string, now: Date): Promise<Failure> {
  const { formerSecretsUntil } = await existingWebhook(kernel, id)
  const oldest = formerSecretsUntil.find((until) => until > now) ?? now
  const seconds = Math.max(1, Math.ceil((oldest.getTime() - now.getTime()) / 1_000))
  return edge('too_many_requests', {
    message: `This webhook has ${MAX_FORMER_SECRETS} former secrets that still sign its deliveries`,
    hint: `Rotate again after ${oldest.toISOString()}, or delete this webhook and make another one`,
    headers: retryAfter(seconds),
  })
}

export async function existingWebhook(kernel: Kernel, id: string): Promise<Webhook> {
  const found = await findWebhook(kernel.db, id)
  if (found === undefined) throw fail('webhook_not_found')
  return found
}

/** For a client that was removed: another client of its name may be another database. */
export const retireWebhooks = ({ db, now }: Pick<Kernel, 'db' | 'now'>, clientName: string): Promise<void> =>
  deactivateWebhooksOf(db, clientName, { reason: 'Its client was removed', now: now() })

/** Whether webhooks are of a client of this name, whether there is one or not. */
export const isNamedByWebhooks = async ({ db }: Pick<Kernel, 'db'>, clientName: string): Promise<boolean> =>
  (await countWebhooks(db, { clientName })) > 0

/** Header values may be credentials for the former origin, and the record does not show them. */
function requireOwnHeaders(
  { url: former, sealedHeaders }: Webhook,
  { url, sealedHeaders: given }: Pick<Partial<Webhook>, 'url' | 'sealedHeaders'>,
): void {
  if (url === undefined || sealedHeaders === null || given !== undefined) return
  if (new URL(url).origin === new URL(former).origin) return
  throw fail('invalid_webhook', {
    message: 'url has another origin, and the stored headers would be sent there',
    hint: 'Give headers again, or null for none',
    details: { field: 'headers' },
  })
}

const actOf = (
  { id, clientName, routeKeys }: Pick<Webhook, 'id' | 'clientName' | 'routeKeys'>,
  fields?: readonly string[],
) => ({
  targetId: id,
  ...(clientName !== null && { clientName }),
  details: { route_keys: routeKeys, ...(fields !== undefined && { fields }) },
})
