import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RuleName } from './limits.ts'

/** The callers that a route allows. Checked before the body is read; shown in the API reference and in the access table. */
export type Access = {
  readonly name: string
  /** OpenAPI security requirements; one of them is enough, and an empty list means open. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  /** Whether the caller has to name a database client in a header. */
  readonly needsClient?: boolean
  /** Codes of the failures that `authorize` throws, for the API reference. */
  readonly failures?: readonly string[]
  /** Throws when the caller has no access. */
  authorize(request: FastifyRequest, reply: FastifyReply): Promise<void> | void
}

export const open: Access = { name: 'open', security: [], authorize: () => {} }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Required: the service does not start with a route without it. */
    access?: Access
    /** The rate limit of this route, by address. */
    limit?: RuleName
    /** The surface that a route belongs to, for metrics. */
    surface?: string
    /** Longest time until the answer, milliseconds; default: `limits.timeout`. */
    timeout?: number
    /** Members of body or query that name a redirect target; the surface checks them. */
    redirects?: readonly string[]
  }
}
