import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clients, LocatedClient } from '#databases/clients/clients.ts'
import type { Access } from '#kernel/http/access.ts'
import { allowOrigin, hasLostOrigin } from '#kernel/http/cors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { unknownClient } from '../caller/called-client.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { requireRight } from '../caller/caller-rights.ts'
import { anonymous, OWNER, type PersonaLookup } from '../caller/caller-role.ts'
import type { Grant } from '../caller/grant.ts'
import type { Grants } from '../caller/grants.ts'
import { callerOn } from '../caller/identify.ts'
import { presenceOf } from '../caller/presence.ts'
import { fail, REFUSED } from '../errors.ts'
import { actingAs } from '../prepare.ts'
import { CALLED_OPS, type Op } from './definition.ts'
import type { FindRoute, OpenRoute } from './open-routes.ts'

declare module 'fastify' {
  interface FastifyRequest {
    publicCall: PublicCall | undefined
  }
}

/** A call of a public route, as its record is now. */
type PublicCall = OpenRoute & { readonly op: Op }

export const FOREIGN_ORIGIN = 'Pages of this origin may not call this public route'

type Parts = {
  readonly clients: Clients
  readonly grants: Grants
  readonly find: FindRoute
  readonly personaOf: PersonaLookup
  readonly security: Access['security']
}

/**
 * Requires what the record of the route asks for: an operation that it allows, its rate limit, and a key unless it is open to all. Decided
 * again when the body has arrived, and while rows are followed, because the record, the key and the session may have changed. `only`: the
 * operation of a path that names none.
 */
export function createPublicAccess(kernel: Kernel, parts: Parts, only?: Op): Access {
  const { find, security } = parts
  return {
    name: 'open, or key where the route asks for one',
    security,
    failures: REFUSED.asPublic,
    async authorize(request, reply) {
      const call = await calledRoute((key) => find(key, request.clientAddress), request, only)
      allowOrigin(kernel, request, reply, call.record.allowedOrigins)
      requireOpen(call)
      const { id, requests, windowSeconds: seconds } = call.record
      await kernel.limits.consumeOwn({ name: `route:${id}`, requests, seconds }, request.clientAddress)
      request.bodyLimit = limitOf(kernel, call)
      request.bodyValues = call.record.requiresKey ? undefined : MAX_VALUES
      await admit(parts, request, reply, call)
    },
    async renew(request, reply) {
      const call = await calledRoute(find, request, only)
      requireOpen(call)
      const { op, record } = call
      if (op === 'subscribe' && hasLostOrigin(kernel, request, reply, record.allowedOrigins))
        throw fail('operation_not_allowed', { message: FOREIGN_ORIGIN })
      await admit(parts, request, reply, call)
    },
  }
}

async function calledRoute(
  find: FindRoute,
  request: FastifyRequest,
  only: Op | undefined,
): Promise<PublicCall> {
  const { route_key, op: named = only } = request.params as { route_key: string; op?: string } // as the path has them
  const ops: readonly Op[] = only === undefined ? CALLED_OPS : [only]
  const op = ops.find((one) => one === named)
  if (op === undefined) throw fail('unknown_operation')
  const route = await find(route_key)
  if (route === undefined) throw fail('public_route_not_found')
  return { ...route, op }
}

function requireOpen({ record, op }: PublicCall): void {
  if (!record.isActive) throw fail('route_inactive')
  if (!record.allowedOps.includes(op)) throw fail('operation_not_allowed')
}

/** Bytes. As the operation has by itself; an update of a stranger is small. */
function limitOf({ config: { limits } }: Kernel, { op, record }: PublicCall): number | undefined {
  // The route has its own.
  if (op === 'subscribe') return undefined
  return op === 'insert' || (op === 'update' && record.requiresKey) ? limits.body_bulk : limits.body
}

/** Of a body without a key: to read the values of a large one takes seconds, in which the process answers nobody. */
const MAX_VALUES = 100_000

async function admit(
  parts: Parts,
  request: FastifyRequest,
  reply: FastifyReply,
  call: PublicCall,
): Promise<void> {
  const { record, scope, op } = call
  const found = await parts.clients.find(record.clientName)
  const client = found && (await parts.clients.locate(found))
  const grant = await grantOf(parts.grants, request, call, client)
  if (client === undefined) throw unknownClient()
  const caller = { ...callerOn(client, grant, request.id, presenceOf(reply)), scope }
  if (op === 'query') requireRight(caller, ['gateway.query', 'gateway.query.read'])
  if (grant.kind !== 'none') request.bodyPayer = `client:${client.name}`
  request.gateway = await actingFor(parts, request, call, caller)
  request.publicCall = call
}

/** A key that the route does not ask for is not looked at. */
async function grantOf(
  grants: Grants,
  request: FastifyRequest,
  { record, scope, op }: PublicCall,
  client: LocatedClient | undefined,
): Promise<Grant> {
  const isFixed = op === 'query' || scope.table !== undefined
  if (!record.requiresKey && isFixed && client?.isLogging !== true) return { kind: 'none' }
  const grant = await grants.of(request, record.clientName)
  if (grant.kind === 'none') throw fail('api_key_required')
  return grant
}

/** With row-level security: the caller's session or the anonymous role, whatever the key, unless the record names the owner. */
async function actingFor(
  { personaOf }: Parts,
  request: FastifyRequest,
  { record }: PublicCall,
  caller: GatewayCaller,
): Promise<GatewayCaller> {
  const { rowLevelSecurity } = caller.client
  if (rowLevelSecurity === undefined) return caller
  if (record.runAs === 'owner') return actingAs(caller, OWNER)
  const presented = await personaOf(request, rowLevelSecurity)
  const { persona, ...session } = presented ?? anonymous(rowLevelSecurity)
  return { ...actingAs(caller, persona), ...session }
}
