import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clients, LocatedClient } from '#databases/clients/clients.ts'
import { fail } from '../errors.ts'
import type { Enforcement } from '../keys/config.ts'
import { clientNamed, unknownClient } from './called-client.ts'
import type { GatewayCaller } from './caller.ts'
import { type TakeRole, unboundCaller } from './identify.ts'
import type { RetainClient } from './renewal.ts'

/**
 * The same caller on another client than that of the request (gateway.md 3, steps of a pipeline). Its key was checked for the client of the
 * request, and lists the other client in `client_overrides`. The other client's own row-level security and enforcement of keys apply.
 */
export type ClientOverride = (
  request: FastifyRequest,
  reply: FastifyReply,
  caller: GatewayCaller,
  name: string,
) => Promise<GatewayCaller>

type Parts = {
  readonly clients: Clients
  readonly enforcement: Enforcement
  readonly takeRole: TakeRole
  readonly retain: RetainClient
}

export const createClientOverride =
  ({ clients, enforcement, takeRole, retain }: Parts): ClientOverride =>
  async (request, reply, caller, name) => {
    if (name === caller.client.name) return caller
    const { grant, presence } = caller
    if (grant.kind === 'none' && (await enforcement.needsKey(name))) throw fail('api_key_required')
    requireListed(caller, name)
    const found = await clientNamed(name, request, clients)
    if (found === undefined) throw unknownClient()
    if (found.source === 'database') retain(found, reply)
    const client = await clients.locate(found)
    requireOpen(caller, client)
    return takeRole(request, unboundCaller(client, grant, request.id, presence))
  }

function requireListed({ grant }: GatewayCaller, name: string): void {
  if (grant.kind !== 'key') return
  const { clientOverrides: listed } = grant.key
  if (listed.includes('*') || listed.includes(name)) return
  throw fail('api_key_client_mismatch', { hint: 'Add the client to client_overrides of the key' })
}

/**
 * The logging client needs the admin key, a session with rights to it, or a key that is bound to it and therefore names it in the request
 * (gateway.md 9).
 */
function requireOpen({ grant }: GatewayCaller, { isLogging }: LocatedClient): void {
  if (isLogging && grant.kind === 'none') throw fail('api_key_required')
  if (isLogging && grant.kind === 'key')
    throw fail('api_key_client_mismatch', { hint: 'In a pipeline, the logging client needs the admin key' })
}
