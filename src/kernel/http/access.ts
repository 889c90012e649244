import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RuleName } from './limits.ts'

/** Who may call a route: checked before the body is read, shown in the API reference and in the access table. */
export type Access = {
  readonly name: string
  /** OpenAPI security requirements: any one of them suffices; none means open. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  /** The caller names a database client in a header. */
  readonly needsClient?: boolean
  /** Codes of the failures that `authorize` throws, for the API reference. */
  readonly failures?: readonly string[]
  /** Throws when the caller may not. */
  authorize(request: FastifyRequest, reply: FastifyReply): Promise<void> | void
}

export const open: Access = { name: 'open', security: [], authorize: () => {} }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Required; the service refuses to start with a route that names none. */
    access?: Access
    /** The rate limit of this route, by address; without it `default`. */
    limit?: RuleName
    /** The surface that a route belongs to, for metrics. */
    surface?: string
    /** Time for an answer, milliseconds; `limits.timeout` if absent. */
    timeout?: number
    /** Members of body or query that name a place to send the browser to; the surface checks them. */
    redirects?: readonly string[]
  }
}
