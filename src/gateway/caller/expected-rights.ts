import type { Clients } from '#databases/clients/clients.ts'
import type { TableName } from '#databases/request/request.ts'
import { EVERY_CLIENT } from '#kernel/config/sections/auth-admin.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Action, EVERY_RIGHT, nameOfRight } from '#kernel/rights.ts'

/** `goesOn`: as in `OperatorSession`. */
type How = { readonly goesOn?: boolean }

/**
 * For a change that lets others use these rights on a client: the user of a session that operates needs them there (house.md 5.13). Call it
 * in the transaction that acts. The admin key and commands have every right.
 */
export const expectRights = async (
  kernel: Kernel,
  client: string | null,
  rights: readonly string[],
  how?: How,
): Promise<void> => kernel.operator?.expectRights(kernel, client ?? EVERY_CLIENT, rights, how)

export const expectEveryRight = (kernel: Kernel, client: string, how?: How): Promise<void> =>
  expectRights(kernel, client, EVERY_RIGHT, how)

/** The rights to act on a table; on every one without a table, or with one whose name no right spells. */
export function rightsToTable(table: TableName | null, actions: readonly Action[]): readonly string[] {
  const isSpelled = table !== null && !table.schema.includes('.') && !table.table.includes('.')
  return actions.map((action) => (isSpelled ? nameOfRight({ ...table, action }) : `gateway.${action}`))
}

/** With the right to what policies hide, where the client has any, or may have had: it is not there any more. */
export const pastPolicies = async (
  clients: Pick<Clients, 'hasRowLevelSecurity' | 'configured' | 'registered'>,
  client: string,
  rights: readonly string[],
): Promise<readonly string[]> => {
  const isThere = clients.configured.has(client) || (await clients.registered()).has(client)
  const isOpen = isThere && !(await clients.hasRowLevelSecurity(client))
  return isOpen ? rights : [...rights, 'gateway.bypass_row_level_security']
}
