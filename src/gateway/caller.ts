import type { FastifyRequest } from 'fastify'
import type { Client } from '#databases/clients/clients.ts'
import type { Backend, Persona, Presence } from '#databases/drivers/driver.ts'
import type { Grant } from './grant.ts'

/** Who is calling the gateway, and on which client. */
export type GatewayCaller = {
  /** Without its driver, which would reach the database as the client's own role. */
  readonly client: Omit<Client, 'driver'>
  /** The database as this caller reaches it. The way to its rows is `prepare`. */
  readonly backend: Backend
  /** Where policies of the database hold for the request. */
  readonly persona: Persona | undefined
  readonly grant: Grant
  readonly requestId: string
  /** Whether they still wait for the answer: every statement that runs for them is told. */
  readonly presence: Presence
}

declare module 'fastify' {
  interface FastifyRequest {
    gateway: GatewayCaller | undefined
  }
}

/** The caller of a route whose access admits no request without a client. */
export function gatewayCaller(request: FastifyRequest): GatewayCaller {
  if (request.gateway === undefined)
    throw new Error(`${request.routeOptions.url} has no client: its access is wrong`)
  return request.gateway
}
