import { Type } from 'typebox'
import type { Config } from '#kernel/config/config.ts'

/** Limit and offset of a list, for endpoints without their own limits (gateway.md 18). */
export function paginationOf({ limits }: Config) {
  const { list_max: maximum } = limits
  const usual = Math.min(limits.list, maximum)
  return {
    query: {
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum, default: usual })),
      offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
    },
    place: ({ limit = usual, offset = 0 }: { readonly limit?: number; readonly offset?: number }) => ({
      limit,
      offset,
    }),
  }
}
