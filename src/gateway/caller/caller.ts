import type { FastifyRequest } from 'fastify'
import type { LocatedClient } from '#databases/clients/clients.ts'
import type { Backend, Persona, Presence } from '#databases/drivers/driver.ts'
import type { TableRight } from '#databases/plan/rights.ts'
import type { Scope } from '#databases/request/request.ts'
import { ADMIN_KEY, ANONYMOUS, CLI, type Origin } from '#kernel/audit/origin.ts'
import { type Kernel, withOrigin } from '#kernel/kernel.ts'
import type { Grant } from './grant.ts'

/** The caller of a gateway route, and the client that it uses. */
export type GatewayCaller = {
  /** The client without its driver, which would act as the client's own role. */
  readonly client: Omit<LocatedClient, 'driver'>
  /** The database, acting as this caller. Rows are only accessible through `prepare`. */
  readonly backend: Backend
  /** Role and claims for row-level security, if the client has it and the caller cannot bypass it. */
  readonly persona: Persona | undefined
  /** The caller's session is an impersonated one, which may only read. */
  readonly isImpersonated: boolean
  /** The user of its session, or the admin who acts as the user. */
  readonly userId?: string | undefined
  /** Whether its session or JWT would be found again as it was. Undefined: unknown, or it has neither. */
  readonly isAsFound?: () => boolean
  readonly grant: Grant
  /** The rights to tables that its operations have needed so far (`rightsOf`), which a stream goes on needing. */
  readonly needed: TableRight[]
  /** The caller of a public route reaches only this part of the client. */
  readonly scope?: Scope
  readonly requestId: string
  /** Whether the caller is still connected. It is passed to every statement, to cancel it if not. */
  readonly presence: Presence
}

declare module 'fastify' {
  interface FastifyRequest {
    gateway: GatewayCaller | undefined
    /** On routes that need a key but no client; on those of operators, of a session. */
    grant: Grant | undefined
  }
}

/** The origin of a request: the audit trail shows the key of the caller, or the user whose session operates. Without a client: the admin key. */
export const originOf = ({
  gateway,
  operating,
  clientAddress: ipAddress,
  headers,
  id: requestId,
}: FastifyRequest): Origin => ({
  actorId: operating?.live.user.id ?? (gateway === undefined ? ADMIN_KEY : actorOf(gateway.grant)),
  ipAddress,
  userAgent: headers['user-agent'],
  requestId,
})

/** The kernel for events of an operation, whose cause is the session's user, or else the key. A command stays the cause of its own. */
export const kernelOf = (kernel: Kernel, { userId, grant, requestId }: GatewayCaller): Kernel =>
  kernel.origin.actorId === CLI.actorId
    ? kernel
    : withOrigin(kernel, { actorId: userId ?? actorOf(grant), requestId })

/** As the audit trail names it. */
export const actorOf = (grant: Grant): string => {
  if (grant.kind === 'key') return `key:${grant.key.id}`
  if (grant.kind === 'session') return grant.userId
  return grant.kind === 'admin' ? ADMIN_KEY : ANONYMOUS
}

/** The rights of the request, for routes whose access rule requires a key but no client. */
export function grantOf(request: FastifyRequest): Grant {
  if (request.grant === undefined)
    throw new Error(`${request.routeOptions.url} has no grant: its access rule does not require a key`)
  return request.grant
}

/** The caller, for routes whose access rule requires a client. */
export function gatewayCaller(request: FastifyRequest): GatewayCaller {
  if (request.gateway === undefined)
    throw new Error(`${request.routeOptions.url} has no client: its access rule does not require one`)
  return request.gateway
}
