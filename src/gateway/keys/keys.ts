import { CUSTOM_CLIENT } from '#databases/clients/custom.ts'
import { actAsOperator } from '#identity/act.ts'
import { tell, tellChange } from '#identity/tell.ts'
import { changedFields } from '#kernel/audit/changed-fields.ts'
import { creatorOf } from '#kernel/audit/creator.ts'
import type { Recorder } from '#kernel/audit/record-act.ts'
import { EVERY_CLIENT } from '#kernel/config/sections/auth-admin.ts'
import { clientNameForm } from '#kernel/config/sections/database.ts'
import { edge } from '#kernel/http/failures.ts'
import { instantFrom } from '#kernel/instants.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { coversRight, isRight } from '#kernel/rights.ts'
import { fail } from '../errors.ts'
import { type ConfiguredNames, refuseRemoved } from '../existing-clients.ts'
import { newSecret } from './secret.ts'
import {
  type ApiKey,
  countKeysOf,
  deleteKey,
  findKey,
  findUsedKey,
  insertKey,
  lockKey,
  retireClient,
  type UsedKey,
  updateKey,
} from './store.ts'

export type { ApiKey }

export type NewKey = {
  readonly name: string
  readonly description?: string | null
  readonly client_name?: string | null
  readonly rights: readonly string[]
  readonly client_overrides?: readonly string[]
  readonly expires_at?: string | null
}

/** A key with its text, which is only available now. */
type IssuedKey = { readonly api_key: string; readonly record: UsedKey }

export async function createKey(
  kernel: Recorder,
  clients: ConfiguredNames,
  asked: NewKey,
): Promise<IssuedKey> {
  const clientName = asked.client_name ?? null
  checkClients(asked)
  checkRights(asked.rights, clientName)
  const { secret, ...sealed } = newSecret(kernel.random)
  const publicId = kernel.random(8).toString('hex')
  const now = kernel.now()
  const key = {
    id: uuidv7(now, kernel.random),
    publicId,
    name: asked.name,
    description: asked.description ?? null,
    clientName,
    rights: [...asked.rights],
    clientOverrides: [...(asked.client_overrides ?? ['*'])],
    ...sealed,
    expiresAt: dateOf(asked.expires_at),
    createdAt: now,
    createdBy: creatorOf(kernel),
    updatedAt: now,
  }
  const record = await actAsOperator(kernel, async (kernel) => {
    await refuseRemoved(kernel, clients, namesIn(asked))
    await expectToHold(kernel, key)
    await tell(kernel, 'api_key.created', actOf(key))
    return insertKey(kernel.db, key)
  })
  return { api_key: `svc_${publicId}.${secret}`, record }
}

type KeyChange = Partial<NewKey> & { readonly is_active?: boolean }

/** Changes a key. When it resolves, all processes use the new version. */
export async function changeKey(
  kernel: Kernel,
  clients: ConfiguredNames,
  id: string,
  change: KeyChange,
): Promise<UsedKey> {
  checkClients(change)
  return updated(kernel, id, 'api_key.updated', async (kernel, before) => {
    const clientName = change.client_name === undefined ? before.clientName : change.client_name
    checkRights(change.rights ?? before.rights, clientName)
    const bound = change.is_active === true && clientName !== null ? [clientName] : []
    await refuseRemoved(kernel, clients, [...bound, ...namesIn(change)])
    const isTakenAway =
      Object.keys(change).every((name) => name === 'is_active') && change.is_active === false
    const [rights, clientOverrides] = [
      change.rights ?? before.rights,
      change.client_overrides ?? before.clientOverrides,
    ]
    if (!isTakenAway) await expectToHold(kernel, { clientName, rights, clientOverrides })
    return {
      ...(change.name === undefined ? {} : { name: change.name }),
      ...(change.description === undefined ? {} : { description: change.description }),
      ...(change.rights === undefined ? {} : { rights: [...change.rights] }),
      ...(change.client_overrides === undefined ? {} : { clientOverrides: [...change.client_overrides] }),
      ...(change.is_active === undefined ? {} : { isActive: change.is_active }),
      ...(change.expires_at === undefined ? {} : { expiresAt: dateOf(change.expires_at) }),
      clientName,
    }
  })
}

/** Gives a key a new secret. The old one stays valid for `grace` seconds. */
export async function rotateKey(kernel: Kernel, id: string, grace: number): Promise<IssuedKey> {
  const { secret, ...sealed } = newSecret(kernel.random)
  const record = await updated(kernel, id, 'api_key.rotated', async (kernel, before) => {
    await expectToHold(kernel, before)
    return {
      ...sealed,
      previousSalt: grace > 0 ? before.salt : null,
      previousSecretHash: grace > 0 ? before.secretHash : null,
      previousExpiresAt: grace > 0 ? new Date(kernel.now().getTime() + grace * 1_000) : null,
    }
  })
  return { api_key: `svc_${record.publicId}.${secret}`, record }
}

/** Revokes a key. When it resolves, no process accepts it. */
export async function revokeKey(kernel: Kernel, id: string): Promise<void> {
  await actAsOperator(kernel, async (kernel) => {
    if (!(await deleteKey(kernel.db, id))) throw fail('api_key_not_found')
    await tell(kernel, 'api_key.revoked', { targetId: id })
  })
}

/** The change is made from the key as no other transaction can change it meanwhile. */
const updated = (
  kernel: Kernel,
  id: string,
  action: 'api_key.updated' | 'api_key.rotated',
  changeOf: (kernel: Kernel, before: ApiKey) => Promise<Parameters<typeof updateKey>[2]>,
): Promise<UsedKey> =>
  actAsOperator(kernel, async (kernel) => {
    const before = await lockKey(kernel.db, id)
    if (before === undefined) throw fail('api_key_not_found')
    const change = await changeOf(kernel, before)
    const key = await updateKey(kernel.db, id, { ...change, updatedAt: kernel.now() })
    await tellChange(kernel, action, changedFields<object>(before, key, change), actOf(key))
    return key
  })

const actOf = ({ id, clientName }: Pick<ApiKey, 'id' | 'clientName'>) => ({
  targetId: id,
  ...(clientName !== null && { clientName }),
})

/**
 * Deactivates the keys of a deleted client, so that they are not valid for a new client of the same name, which may be a different
 * database. They are kept and can be bound and activated again.
 */
export const retireKeys = ({ db, now }: Pick<Kernel, 'db' | 'now'>, clientName: string): Promise<void> =>
  retireClient(db, clientName, now())

/** Whether keys lead to a client of this name, whether there is one or not. */
export const isNamedByKeys = async ({ db }: Pick<Kernel, 'db'>, clientName: string): Promise<boolean> =>
  (await countKeysOf(db, clientName)) > 0

/** The key with this public id (`svc_{publicId}.…`). */
export const keyNamed = ({ db }: Pick<Kernel, 'db'>, publicId: string): Promise<ApiKey | undefined> =>
  findKey(db, 'publicId', publicId)

export async function existing(kernel: Kernel, id: string): Promise<UsedKey> {
  const found = await findUsedKey(kernel.db, id)
  if (found === undefined) throw fail('api_key_not_found')
  return found
}

/**
 * The text of a key is worth all of its rights, so the user of a session that operates needs its rights on each client that it reaches:
 * those of `client_overrides` by pipelines.
 */
async function expectToHold(kernel: Recorder, { clientName, rights, clientOverrides }: Reach): Promise<void> {
  const runsPipelines = coversRight(rights, 'pipelines.run')
  for (const client of new Set([clientName ?? EVERY_CLIENT, ...(runsPipelines ? clientOverrides : [])]))
    await kernel.operator?.expectRights(kernel, client, rights)
}

type Reach = Pick<ApiKey, 'clientName'> & {
  readonly rights: readonly string[]
  readonly clientOverrides: readonly string[]
}

/** The clients that the fields name. */
const namesIn = ({
  client_name: bound,
  client_overrides: overrides = [],
}: Partial<NewKey>): readonly string[] =>
  [...(bound ? [bound] : []), ...overrides].filter((name) => name !== '*')

/** Rejects impossible client names: such a key would look bound, but be valid for nothing. */
export function checkClients({
  client_name: bound,
  client_overrides: overrides = [],
}: Partial<NewKey>): void {
  const refuse = (field: string) =>
    edge('validation_error', {
      message: `${field} is not a valid client name`,
      hint: 'A name begins with a letter, followed by up to 62 letters, digits, _ or -.',
      details: { field, in: 'body' },
    })
  const isPossible = (name: string) => name === CUSTOM_CLIENT || clientNameForm.parse(name) !== undefined
  if (typeof bound === 'string' && !isPossible(bound)) throw refuse('client_name')
  if (!overrides.every((name) => name === '*' || isPossible(name))) throw refuse('client_overrides')
}

export function checkRights(rights: readonly string[], clientName: string | null): void {
  const wrong = rights.find((right) => !isRight(right))
  if (wrong !== undefined) {
    throw fail('invalid_right', {
      message: `"${wrong}" is not a valid right`,
      hint: 'Use a right of GET /admin/rights/catalog, TABLE.read|write|delete or SCHEMA.TABLE.read|write|delete',
    })
  }
  if (clientName === null && rights.some((right) => right.startsWith('management.'))) {
    throw fail('invalid_right', {
      message: 'Management rights require a key that is bound to a client',
      hint: 'Set client_name',
    })
  }
}

function dateOf(text: string | null | undefined): Date | null {
  if (text === null || text === undefined) return null
  // The route's format accepts leap seconds, which Date does not support, and the command line accepts any text.
  const date = instantFrom(text)
  if (date === undefined) throw edge('validation_error', { message: 'expires_at is not a date' })
  return date
}
