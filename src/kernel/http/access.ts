import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RuleName } from './limits/limits.ts'

/** The callers that a route allows. Checked before the body is read; shown in the API reference and in the access table. */
export type Access = {
  /** For the access table and the API reference. */
  readonly name: string
  /** OpenAPI security requirements; one of them is enough. An empty list admits every caller. */
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  /** Whether the caller has to name a database client in a header. */
  readonly needsClient?: boolean
  /** Whether that client may be `custom_supabase`, whose project is in further headers. */
  readonly takesProject?: boolean
  /** Codes of the failures that `authorize` throws, for the API reference. */
  readonly failures?: readonly string[]
  /** Throws when the caller has no access. */
  authorize(request: FastifyRequest, reply: FastifyReply): Promise<void> | void
  /** Checks again when the body has arrived. The surface calls it, and otherwise decides itself. */
  readonly renew?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

export const open: Access = { name: 'open', security: [], authorize: () => {} }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Required, although optional in the type: the service does not start if a route lacks it. */
    access?: Access
    /** The rate limit of this route, by address. */
    limit?: RuleName
    /** The surface of the route (`auth`, `gateway`, …), as a label of metrics. */
    surface?: string
    /** Milliseconds until the request times out; default: `limits.timeout`. */
    timeout?: number
    /** Members of body or query that contain a redirect URL. The authentication surface checks their origin. */
    redirects?: readonly string[]
  }
}
