import { isDeepStrictEqual } from 'node:util'
import type { LocatedClient } from '#databases/clients/clients.ts'
import type { Rights, TableRight } from '#databases/plan/rights.ts'
import { fail } from '../errors.ts'
import { type FIXED_RIGHTS, grantsFixed, grantsTable, nameOfRight } from '../keys/rights.ts'
import { clientFrozen, type FrozenClient } from '../read-only-client.ts'
import type { GatewayCaller } from './caller.ts'
import type { Grant } from './grant.ts'

export type FixedRight = keyof typeof FIXED_RIGHTS

/** A caller; on a route that requires no client, without one. */
type Holder = Pick<GatewayCaller, 'grant'> & Partial<Pick<GatewayCaller, 'client'>>

/** Whether the key has this right. The admin key, and callers that need no key, have all rights that the route requires. */
export const hasRight = ({ grant, client }: Holder, right: FixedRight): boolean =>
  holds(grant, right, client?.rowLevelSecurity !== undefined)

const holds = (grant: Grant, right: FixedRight, hasPolicies: boolean): boolean =>
  grant.kind !== 'key' ||
  grantsFixed(grant.key.rights, right, { isBound: grant.key.clientName !== null, hasPolicies })

/** Requires one of these rights. The error names the first. */
export function requireRight(caller: Holder, rights: readonly FixedRight[]): void {
  if (!rights.some((right) => hasRight(caller, right))) throw lacking(rights.slice(0, 1))
}

/** Where another client of the same database has row-level security. */
export function requireRightBeyondPolicies({ grant }: Holder, right: FixedRight): void {
  if (!holds(grant, right, true)) throw lacking([right])
}

/** Whether this grant bypasses row-level security. */
export const bypassesPolicies = (grant: Grant): boolean =>
  grant.kind === 'admin' || (grant.kind === 'key' && hasRight({ grant }, 'gateway.bypass_row_level_security'))

/** On a client with row-level security. Its absence is a bug of the code that made the caller (`actingAs`), not a refusal. */
export function requirePersona({ client, grant, persona }: GatewayCaller): void {
  if (client.rowLevelSecurity !== undefined && persona === undefined && !bypassesPolicies(grant))
    throw new Error(`A caller of ${client.name} has no persona`)
}

/** After a wait: a caller with another role or other claims is another caller. */
export function requireSamePersona(
  { persona: before }: GatewayCaller,
  { persona: now }: GatewayCaller,
): void {
  if (before?.role !== now?.role || before?.claims !== now?.claims) throw fail('caller_changed')
}

/** After a wait: an operator may have given the client another address. A configured client keeps its own. */
export async function requireSameDatabase(before: GatewayCaller, now: GatewayCaller): Promise<void> {
  if (before.client === now.client || now.client.source === 'config') return
  const [was, is] = await Promise.all([before.backend.identity(), now.backend.identity()])
  const isSame =
    was === undefined && is === undefined
      ? before.client.addressDigest === now.client.addressDigest
      : was === is
  if (!isSame) throw fail('client_changed')
}

/** For what acts as the client's own role: a change that writes or shows hidden rows, and a caller's own SQL, which can switch to that role. */
export function requirePolicyBypass({ client, grant }: GatewayCaller): void {
  if (client.rowLevelSecurity !== undefined && !bypassesPolicies(grant))
    throw lacking(['gateway.bypass_row_level_security'])
}

/** The caller's rights for the planner. Each table of a request needs its own right, including tables of relations. */
export function rightsOf(caller: GatewayCaller): Rights {
  const { client, grant } = caller
  const may = (right: TableRight) => grant.kind !== 'key' || grantsTable(grant.key.rights, right)
  return {
    may,
    require(required) {
      const isWrite = required.some(({ action }) => action !== 'read')
      if (client.isLogging && isWrite) throw fail('read_only')
      const lacks = required.filter((right) => !may(right))
      if (lacks.length > 0) throw lacking([...new Set(lacks.map(nameOfRight))])
      if (isWrite) {
        requireOwnSession(caller)
        requireWritable(client)
      }
      note(caller.needed, required)
    },
  }
}

function note(needed: TableRight[], required: readonly TableRight[]): void {
  for (const right of required) if (!needed.some((one) => isSame(one, right))) needed.push(right)
}

const isSame = (one: TableRight, other: TableRight): boolean =>
  one.table === other.table && one.schema === other.schema && one.action === other.action

/**
 * For a stream that the caller began before: it goes on as the same caller, on the same client, with the rights that it began with. Throws
 * for what a new request would be refused for, and for a freeze, which ends reads that keep a restore or an operator waiting.
 */
export function requireSameStanding(before: GatewayCaller, now: GatewayCaller): void {
  requireNotFrozenSince(before, now)
  if (before.client !== now.client && now.client.source === 'database') throw fail('client_changed')
  requireSamePersona(before, now)
  if (!isDeepStrictEqual(before.scope, now.scope)) throw fail('caller_changed')
  requireNeeded(before, now)
}

/** The rights that it has needed so far. */
export function requireNeeded(before: GatewayCaller, now: GatewayCaller): void {
  if (before.grant !== now.grant) rightsOf(now).require(before.needed)
}

/** A restore ends streams that began meanwhile, too: it would wait for their locks. */
export function requireNotFrozenSince(
  { client: before }: Pick<GatewayCaller, 'client'>,
  { client }: { readonly client: FrozenClient },
): void {
  if (client.isRestoring || (client.isFrozen && !before.isFrozen)) throw clientFrozen(client)
}

/**
 * For everything that may write: an admin who acts as a user reads only (auth.md 10). SQL of callers runs without a session: it requires a
 * key that bypasses the policies.
 */
export function requireOwnSession({ isImpersonated }: GatewayCaller): void {
  if (isImpersonated) throw fail('not_while_impersonating')
}

/**
 * Checked after the right to write, so that only its holder learns that the client is frozen. The driver of a frozen client rejects writes
 * as well.
 */
export function requireWritable(client: FrozenClient & Pick<LocatedClient, 'isLogging'>): void {
  if (client.isLogging) throw fail('read_only')
  if (client.isFrozen) throw clientFrozen(client)
}

/** The key lacks these rights. */
export const lacking = (rights: readonly string[]) =>
  fail('insufficient_rights', {
    hint: `The key needs ${rights.join(', ')}`,
    details: { required_right: rights[0], required_rights: rights },
  })
