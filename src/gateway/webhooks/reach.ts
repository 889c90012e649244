import { isDeepStrictEqual } from 'node:util'
import type { Clients } from '#databases/clients/clients.ts'
import { EVERY_CLIENT } from '#kernel/config/sections/auth-admin.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { expectEveryRight, expectRights, pastPolicies, rightsToTable } from '../caller/expected-rights.ts'
import type { Webhook } from './store.ts'
import { hasRows, isOfUsers, tableNamed } from './subscription.ts'

/** The part of a webhook that says whose data it gets. */
type Reach = Pick<Webhook, 'routeKeys' | 'clientName' | 'tableName'>

/**
 * Throws when the session that operates may not read what a webhook sends: rows of all callers, or accounts. Its secret signs what its
 * receiver takes for them. `goesOn`: as in `OperatorSession`.
 */
export async function expectToHold(
  kernel: Kernel,
  clients: Clients,
  { routeKeys, clientName, tableName }: Reach,
  how?: { readonly goesOn?: boolean },
): Promise<void> {
  if (isOfUsers(routeKeys)) await kernel.operator?.expectToListUsers(kernel)
  if (clientName === null || !hasRows(routeKeys)) return
  const rights = await pastPolicies(
    clients,
    clientName,
    rightsToTable(tableName === null ? null : tableNamed(tableName), ['read']),
  )
  await expectRights(kernel, clientName, rights, how)
}

/**
 * The same for a delivery from before the webhook became one of this table, client or event: it may have rows of every table, and of relations,
 * whatever its event names.
 */
export async function expectToHoldFormer(kernel: Kernel, how?: { readonly goesOn?: boolean }): Promise<void> {
  await kernel.operator?.expectToListUsers(kernel)
  await expectEveryRight(kernel, EVERY_CLIENT, how)
}

/** Milliseconds until no process matches events by what the webhook was, and those that it has matched are written. */
const SETTLED = 10_000

/** Up to here deliveries may be of a former reach. Undefined for a webhook whose reach has never changed. */
export const endOfFormer = ({ reachChangedAt }: Pick<Webhook, 'reachChangedAt'>): Date | undefined =>
  reachChangedAt === null ? undefined : new Date(reachChangedAt.getTime() + SETTLED)

/** Whether the check lets the session see what a receiver has answered, which may repeat what it was sent. */
export async function isHeld(check: () => Promise<void>): Promise<boolean> {
  try {
    await check()
    return true
  } catch (error) {
    if (error instanceof Failure && error.code === 'insufficient_rights') return false
    throw error
  }
}

/** Whether both get the same events. */
export const hasSameReach = (one: Reach, other: Reach): boolean =>
  one.clientName === other.clientName &&
  one.tableName === other.tableName &&
  isDeepStrictEqual(one.routeKeys, other.routeKeys)
