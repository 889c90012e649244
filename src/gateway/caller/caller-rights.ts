import { isDeepStrictEqual } from 'node:util'
import type { LocatedClient } from '#databases/clients/clients.ts'
import type { Rights, TableRight } from '#databases/plan/rights.ts'
import { rightsOnClient } from '#identity/permissions.ts'
import { EVERY_CLIENT } from '#kernel/config/sections/auth-admin.ts'
import { type FIXED_RIGHTS, grantsFixed, grantsTable, nameOfRight } from '#kernel/rights.ts'
import { fail } from '../errors.ts'
import { clientFrozen, type FrozenClient } from '../read-only-client.ts'
import type { GatewayCaller } from './caller.ts'
import type { Grant, SessionGrant } from './grant.ts'

export type FixedRight = keyof typeof FIXED_RIGHTS

const BYPASS = 'gateway.bypass_row_level_security'

/** A caller; on a route that requires no client, without one. */
type Holder = Pick<GatewayCaller, 'grant'> & { readonly client?: GatewayCaller['client'] | undefined }

/** Whether the key has this right. The admin key, and callers that need no key, have all rights that the route requires. */
export const hasRight = ({ grant, client }: Holder, right: FixedRight): boolean =>
  holds({ grant, client }, right, client?.rowLevelSecurity !== undefined)

function holds({ grant, client }: Holder, right: FixedRight, hasPolicies: boolean): boolean {
  if (grant.kind === 'session')
    return grantsFixed(rightsInRole(grant, client?.name), right, { isBound: true, hasPolicies })
  return (
    grant.kind !== 'key' ||
    grantsFixed(grant.key.rights, right, { isBound: grant.key.clientName !== null, hasPolicies })
  )
}

/** On a route without a client: those on any. */
export const rightsInRole = ({ gateway }: SessionGrant, client: string | undefined): readonly string[] =>
  client === undefined ? [...gateway.values()].flat() : rightsOnClient(gateway, client)

/** Requires one of these rights. The error names the first. */
export function requireRight(caller: Holder, rights: readonly FixedRight[]): void {
  const held = rights.find((right) => hasRight(caller, right))
  if (held === undefined) throw lacking(caller.grant, rights.slice(0, 1))
  requireProof(caller.grant, [held])
}

/** For rights to SQL, also as a function, to delete and to bypass row-level security, a session has to show who it is again. */
function requireProof(grant: Grant, rights: readonly string[]): void {
  if (grant.kind === 'session' && !grant.isProven && rights.some(needsProof))
    throw fail('session_not_fresh', { details: { accepts: grant.accepts } })
}

const PROVEN_RIGHTS = new Set([
  '*', 'gateway.*', 'gateway.query', 'gateway.query.read', 'management.functions.write', BYPASS,
]) // biome-ignore format: one line reads better

/** Whether a session needs a proof within ten minutes to use this right, or to give it. */
export const needsProof = (right: string): boolean =>
  PROVEN_RIGHTS.has(right) || /\.(delete|drop|\*)$/.test(right)

/** Where another client of the same database has row-level security. */
export function requireRightBeyondPolicies(holder: Holder, right: FixedRight): void {
  if (!holds(holder, right, true)) throw lacking(holder.grant, [right])
  requireProof(holder.grant, [right])
}

/** Whether the caller bypasses row-level security on this client. */
export const bypassesPolicies = (holder: Holder): boolean =>
  mayBypass(holder) && (holder.grant.kind !== 'session' || holder.grant.isProven)

const mayBypass = (holder: Holder): boolean => holder.grant.kind !== 'none' && hasRight(holder, BYPASS)

/** The same, but a session that lacks only the proof is refused: as its user it would find other rows. */
export function bypassesWithProof(holder: Holder): boolean {
  if (mayBypass(holder)) requireProof(holder.grant, [BYPASS])
  return bypassesPolicies(holder)
}

/** On a client with row-level security. Its absence is a bug of the code that made the caller (`actingAs`), not a refusal. */
export function requirePersona(caller: GatewayCaller): void {
  const { client, persona } = caller
  if (client.rowLevelSecurity !== undefined && persona === undefined && !bypassesPolicies(caller))
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
export function requirePolicyBypass(caller: GatewayCaller): void {
  if (caller.client.rowLevelSecurity !== undefined && !bypassesWithProof(caller))
    throw lacking(caller.grant, [BYPASS])
}

/** The caller's rights for the planner. Each table of a request needs its own right, including tables of relations. */
export function rightsOf(caller: GatewayCaller): Rights {
  const { client, grant } = caller
  const may = (right: TableRight) => holdsTable(caller, right)
  return {
    may,
    require(required) {
      const isWrite = required.some(({ action }) => action !== 'read')
      if (client.isLogging && isWrite) throw fail('read_only')
      const lacks = required.filter((right) => !may(right))
      if (lacks.length > 0) throw lacking(grant, [...new Set(lacks.map(nameOfRight))])
      requireProof(grant, required.map(nameOfRight))
      if (isWrite) {
        requireOwnSession(caller)
        requireWritable(client)
      }
      note(caller.needed, required)
    },
  }
}

function holdsTable({ client, grant }: GatewayCaller, right: TableRight): boolean {
  if (grant.kind === 'session') return grantsTable(rightsInRole(grant, client.name), right)
  return grant.kind !== 'key' || grantsTable(grant.key.rights, right)
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
  const isSame = before.client === now.client || now.client.source === 'config'
  // A public route may lead to another client by now.
  if (!isSame || before.client.name !== now.client.name) throw fail('client_changed')
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

/** The key, or the roles of the session's user, lack these rights. */
export const lacking = (grant: Grant, rights: readonly string[]) =>
  grant.kind === 'session'
    ? lackingInRole(rights)
    : fail('insufficient_rights', {
        hint: `The key needs ${rights.join(', ')}`,
        details: { required_right: rights[0], required_rights: rights },
      })

/** `client`: where, if that is not the client of the request. */
export const lackingInRole = (rights: readonly string[], client?: string) =>
  fail('insufficient_rights', {
    message: 'The roles of the user do not have this right',
    hint: `A role of the user needs ${rights.join(', ')}${client === undefined ? '' : ` on ${client === EVERY_CLIENT ? 'every client' : `the client ${client}`}`}`,
    details: { required_right: rights[0], required_rights: rights },
  })
