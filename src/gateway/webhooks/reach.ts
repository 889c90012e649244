import type { Clients } from '#databases/clients/clients.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { expectRights, pastPolicies, rightsToTable } from '../caller/expected-rights.ts'
import type { Webhook } from './store.ts'
import { hasRows, isOfUsers } from './subscription.ts'

/** The part of a webhook, or of an event, that says whose data it has. */
export type Reach = Pick<Webhook, 'routeKeys' | 'clientName' | 'tableName'>

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
  const rights = pastPolicies(clients, clientName, rightsToTable(tableName, ['read']))
  await expectRights(kernel, clientName, rights, how)
}

/** Whether the session may see what a receiver has answered, which may repeat what it was sent. */
export async function seesAnswers(kernel: Kernel, clients: Clients, reach: Reach): Promise<boolean> {
  try {
    await expectToHold(kernel, clients, reach, { goesOn: true })
    return true
  } catch (error) {
    if (error instanceof Failure && error.code === 'insufficient_rights') return false
    throw error
  }
}
