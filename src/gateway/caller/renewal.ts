import { finished } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Client, Clients, LocatedClient } from '#databases/clients/clients.ts'
import { fail } from '../errors.ts'
import { actingAs } from '../prepare.ts'
import { unknownClient } from './called-client.ts'
import { type GatewayCaller, gatewayCaller } from './caller.ts'
import { requireNotFrozenSince, requireSameStanding } from './caller-rights.ts'
import type { Grant } from './grant.ts'
import type { Grants } from './grants.ts'
import type { Identify } from './identify.ts'
import { withoutNewProof } from './operating-session.ts'

export type Renewal = {
  /** A `preHandler` hook that checks key, client and session again, because the body may have taken long to arrive. */
  readonly hook: (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void
  /** Does the same between the steps of long work, and returns the caller. Throws when the caller may not continue. */
  again(request: FastifyRequest, reply: FastifyReply): Promise<GatewayCaller>
  /** For an answer that is being sent. The returned function throws when its caller may have no more of it. */
  watch(request: FastifyRequest, reply: FastifyReply): () => Promise<void> | void
  /** The same for an answer that goes on for ever, so that a proof has to be as recent as for a new request all the time. */
  follow(request: FastifyRequest, reply: FastifyReply): () => Promise<void> | void
}

/** `identify` is the one for data operations, because other callers have no persona. */
export function createRenewal(
  clients: Clients,
  { hasChanged }: Grants,
  identify: Identify,
  retain: RetainClient,
): Renewal {
  /** A caller without a key may need one now. */
  const mayHaveChanged = (grant: Grant): boolean => grant.kind === 'none' || hasChanged(grant)

  /** It may have row-level security by now, and the caller a role. */
  const mayBeProtected = (client: GatewayCaller['client']): boolean =>
    client.isUndecided === true && !clients.isAsFound(client)

  /** Configured clients change only while they are restored, and by `protectClient`. */
  const isAsItWas = (
    { grant, persona, client, isAsFound }: GatewayCaller,
    { routeOptions }: FastifyRequest,
  ): boolean =>
    !mayHaveChanged(grant) &&
    (persona === undefined || isAsFound?.() === true) &&
    clients.isAsFound(client) &&
    routeOptions.config.access?.renew === undefined

  async function renew(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const caller = await renewCaller(request, reply)
    if (clients.isAsFound(caller.client)) return
    const found = await current(clients, caller.client.name)
    retain(found, reply)
    const client = await clients.locate(found)
    // It was asked for because it is not known to be the same, as while the caches are not trusted.
    if (client !== caller.client) request.gateway = onClient(caller, client)
  }

  /** By key and session. */
  async function renewCaller(request: FastifyRequest, reply: FastifyReply): Promise<GatewayCaller> {
    const { grant, persona, needed, client } = gatewayCaller(request)
    const { access } = request.routeOptions.config
    if (access?.renew !== undefined) await access.renew(request, reply)
    else if (mayHaveChanged(grant) || mayBeProtected(client)) await access?.authorize(request, reply)
    else if (persona !== undefined) request.gateway = await identify(request, reply, grant)
    const caller = { ...gatewayCaller(request), needed }
    request.gateway = caller
    return caller
  }

  async function stay(before: GatewayCaller, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const caller = await renewCaller(request, reply)
    if (clients.isAsFound(caller.client)) return requireSameStanding(before, caller)
    const found = await current(clients, caller.client.name)
    // First, because a client that was frozen has a new driver, whose database would be asked which one it is.
    requireNotFrozenSince(before, { client: found })
    requireSameStanding(before, { ...caller, client: await clients.locate(found) })
  }

  /** On a route without a client. */
  async function renewGrant(request: FastifyRequest, reply: FastifyReply, grant: Grant): Promise<void> {
    if (hasChanged(grant)) await request.routeOptions.config.access?.authorize(request, reply)
  }

  function checkOf(request: FastifyRequest, reply: FastifyReply): () => Promise<void> | void {
    const { gateway: before, grant, routeOptions } = request
    if (grant !== undefined) return () => renewGrant(request, reply, grant)
    if (before === undefined) return () => routeOptions.config.access?.authorize(request, reply)
    return () => {
      const now = gatewayCaller(request)
      requireNotFrozenSince(before, now)
      return isAsItWas(now, request) ? undefined : stay(before, request, reply)
    }
  }

  return {
    hook(request, reply, done) {
      const { gateway: caller, grant } = request
      if (grant !== undefined) renewGrant(request, reply, grant).then(() => done(), done)
      else if (caller === undefined || isAsItWas(caller, request)) done()
      else renew(request, reply).then(() => done(), done)
    },
    async again(request, reply) {
      if (!isAsItWas(gatewayCaller(request), request)) await renew(request, reply)
      return gatewayCaller(request)
    },
    watch(request, reply) {
      const began = request.gateway?.grant ?? request.grant
      const check = checkOf(request, reply)
      return began?.kind === 'session' ? () => withoutNewProof(request, began, check) : check
    },
    follow: checkOf,
  }
}

/** Keeps the client's driver open until the response has been sent. */
export type RetainClient = (client: Client, reply: FastifyReply) => void

export function createRetention(clients: Clients): RetainClient {
  const retained = new WeakMap<FastifyReply, Set<Client>>()
  return (client, reply) => {
    const those = retained.get(reply) ?? new Set()
    retained.set(reply, those)
    if (those.has(client)) return
    those.add(client)
    const release = clients.retain(client)
    finished(reply.raw, () => release(reply.raw.statusCode < 300))
  }
}

/** The caller keeps its role: the client's own would pass the policies by. */
function onClient(caller: GatewayCaller, client: LocatedClient): GatewayCaller {
  const { persona } = caller
  const isProtectedSince =
    client.rowLevelSecurity !== undefined && caller.client.rowLevelSecurity === undefined
  if (isProtectedSince) throw fail('caller_changed')
  const own = { ...caller, client, backend: client.driver }
  return persona === undefined ? own : actingAs(own, persona)
}

async function current(clients: Clients, name: string): Promise<Client> {
  const client = await clients.find(name)
  if (client === undefined) throw unknownClient()
  return client
}
