import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clients, LocatedClient } from '#databases/clients/clients.ts'
import type { Presence } from '#databases/drivers/driver.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import type { ApiKey } from '../keys/keys.ts'
import { actingAs } from '../prepare.ts'
import { calledClient } from './called-client.ts'
import type { GatewayCaller } from './caller.ts'
import { bypassesPolicies, bypassesWithProof } from './caller-rights.ts'
import { actingAsUser, anonymous, OTHERS_ONLY, type PersonaLookup } from './caller-role.ts'
import type { Grant } from './grant.ts'
import { presenceOf } from './presence.ts'

/**
 * Determines the client of a request and the role it acts as. Runs after the grant is determined, so that unauthenticated callers cannot
 * find out which clients exist.
 */
export type Identify = (request: FastifyRequest, reply: FastifyReply, grant: Grant) => Promise<GatewayCaller>

/** Identifies callers that act as the client's own role. Checks header, existence of the client and binding of the key, in this order. */
export const createIdentify =
  (clients: Clients): Identify =>
  async (request, reply, grant) => {
    const client = await clients.locate(await calledClient(request, clients))
    request.bodyPayer = `client:${client.name}`
    return callerOn(client, grant, request.id, presenceOf(reply))
  }

/** A caller needs no HTTP request. On a client with row-level security `actingAs` has to follow, or nothing can be prepared. */
export function callerOn(
  client: LocatedClient,
  grant: Grant,
  requestId: string,
  presence: Presence,
): GatewayCaller {
  if (grant.kind === 'none' && client.isLogging) throw fail('api_key_required')
  if (grant.kind === 'key' && !isFor(grant.key, client)) throw fail('api_key_client_mismatch')
  return unboundCaller(client, grant, requestId, presence)
}

/** For a client that the key need not be bound to (client-override.ts). */
export const unboundCaller = (
  client: LocatedClient,
  grant: Grant,
  requestId: string,
  presence: Presence,
): GatewayCaller => ({
  client,
  backend: client.driver,
  persona: undefined,
  isImpersonated: false,
  grant,
  needed: [],
  requestId,
  presence,
})

/** Gives a caller the role of its session, if its client has row-level security. */
export type TakeRole = (request: FastifyRequest, caller: GatewayCaller) => Promise<GatewayCaller>

/**
 * A presented session decides about role and claims, whatever the key; one that operates with the right to bypass row-level security acts
 * as the client's own role. Without one, the admin key and keys with the right to bypass row-level security act as the client's own role,
 * and all others as the anonymous role.
 */
export const createTakeRole =
  (kernel: Kernel, personaOf: PersonaLookup): TakeRole =>
  async (request, caller) => {
    const { rowLevelSecurity } = caller.client
    if (rowLevelSecurity === undefined) return caller
    const { operating } = request
    if (operating !== undefined && bypassesWithProof(caller)) return caller
    if (operating !== undefined && rowLevelSecurity.refusesSessions === true)
      throw fail('invalid_session', OTHERS_ONLY)
    const presented =
      operating === undefined
        ? await personaOf(request, rowLevelSecurity)
        : actingAsUser(kernel, operating.live, rowLevelSecurity.signedInRole)
    if (presented === undefined && bypassesPolicies(caller)) return caller
    const { persona, ...session } = presented ?? anonymous(rowLevelSecurity)
    return { ...actingAs(caller, persona), ...session }
  }

/** Identifies callers with row-level security. */
export const createDataIdentify =
  (identify: Identify, takeRole: TakeRole): Identify =>
  async (request, reply, grant) =>
    takeRole(request, await identify(request, reply, grant))

/** Identifies callers of SQL, which cannot act as a session's user: it could take the client's own role again. */
export const createSqlIdentify =
  (identify: Identify, personaOf: PersonaLookup): Identify =>
  async (request, reply, grant) => {
    const caller = await identify(request, reply, grant)
    if (grant.kind === 'session') return caller
    const { rowLevelSecurity } = caller.client
    const presented = rowLevelSecurity && (await personaOf(request, rowLevelSecurity))
    if (presented?.isImpersonated) throw fail('not_while_impersonating')
    if (presented !== undefined) throw fail('sql_with_session')
    return caller
  }

/** A key without a client is valid for any client except those of the logging database, which require a bound key. */
const isFor = ({ clientName }: ApiKey, client: LocatedClient): boolean =>
  clientName === null ? !client.isLogging : clientName === client.name
