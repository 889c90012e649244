import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Access } from '#kernel/http/access.ts'
import type { Changer } from './change.ts'
import type { OPERATIONS, Operation } from './operations.ts'

/** For the files with routes of this feature. */
export type RouteParts = {
  /** Method, path and access of an operation. */
  routeOf<O extends Operation>(
    operation: O,
  ): {
    readonly method: (typeof OPERATIONS)[O]['method']
    readonly url: (typeof OPERATIONS)[O]['path']
    readonly config: { readonly access: Access; readonly failures: readonly string[] }
    readonly preValidation?: (request: FastifyRequest) => Promise<void>
  }
  changerOf(request: FastifyRequest, reply: FastifyReply): Changer
}

/** The name of one object, with an example of its kind. */
export const nameLike = (example: string) => Type.String({ minLength: 1, maxLength: 63, examples: [example] })
export const SchemaName = Type.Optional(Type.String({ minLength: 1, maxLength: 63, default: 'public' }))

/** Whether objects that depend on the dropped one are dropped too. */
export const CascadeFlag = Type.Optional(
  Type.Boolean({
    default: false,
    description: 'Drops what depends on it too. Without it, a dependent object refuses the drop with 409',
  }),
)
