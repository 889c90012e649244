import type { Client } from '#databases/clients/clients.ts'
import type { Rights, TableRight } from '#databases/plan/rights.ts'
import type { GatewayCaller } from './caller.ts'
import { fail } from './errors.ts'
import type { Grant } from './grant.ts'
import { type FIXED_RIGHTS, grantsFixed, grantsTable, nameOfRight } from './keys/rights.ts'

export type FixedRight = keyof typeof FIXED_RIGHTS

/** Whether the key carries this right; the admin key, and a caller who needs no key, carry all that a route lets them come to. */
export const hasRight = ({ grant }: Pick<GatewayCaller, 'grant'>, right: FixedRight): boolean =>
  grant.kind !== 'key' || grantsFixed(grant.key.rights, right, grant.key.clientName !== null)

/** Asks for one of these rights; the refusal names the first. */
export function requireRight(caller: GatewayCaller, rights: readonly FixedRight[]): void {
  if (!rights.some((right) => hasRight(caller, right))) throw lacking(rights.slice(0, 1))
}

/** Whether the policies of a client with row-level security do not hold for this grant. */
export const passesPolicies = (grant: Grant): boolean =>
  grant.kind === 'admin' || (grant.kind === 'key' && hasRight({ grant }, 'gateway.bypass_row_level_security'))

/** On a client with row-level security. Its absence is a bug of the code that made the caller (`actingAs`), not a refusal. */
export function requirePersona({ client, grant, persona }: GatewayCaller): void {
  if (client.rowLevelSecurity !== undefined && persona === undefined && !passesPolicies(grant))
    throw new Error(`A caller of ${client.name} has no persona`)
}

/** SQL of the caller's own could take any role that the client's role may take. */
export function requirePassing({ client, grant }: GatewayCaller): void {
  if (client.rowLevelSecurity !== undefined && !passesPolicies(grant))
    throw lacking(['gateway.bypass_row_level_security'])
}

/** What planning asks: every table that a request touches needs its own right, whatever path leads there. */
export function rightsOf({ client, grant }: GatewayCaller): Rights {
  const may = (right: TableRight) => grant.kind !== 'key' || grantsTable(grant.key.rights, right)
  return {
    may,
    require(required) {
      const isWrite = required.some(({ action }) => action !== 'read')
      if (client.isLogging && isWrite) throw fail('read_only')
      const lacks = required.filter((right) => !may(right))
      if (lacks.length > 0) throw lacking([...new Set(lacks.map(nameOfRight))])
      if (isWrite) requireThawed(client)
    },
  }
}

/** Asked after the right to write, so that only its holder learns that the client is frozen. The driver takes no write either. */
export function requireThawed({ isFrozen }: Pick<Client, 'isFrozen'>): void {
  if (isFrozen) throw fail('client_frozen', { hint: 'PUT /admin/clients/{name}/freeze thaws it' })
}

const lacking = (rights: readonly string[]) =>
  fail('insufficient_rights', {
    hint: `The key needs ${rights.join(', ')}`,
    details: { required_right: rights[0], required_rights: rights },
  })
