import { Type } from 'typebox'
import type { Config } from '#kernel/config/config.ts'

export type Page = { readonly limit: number; readonly offset: number }

/** Limit and offset of a list, for endpoints without their own limits (gateway.md 18). */
export const paginationOf = ({ limits }: Config) =>
  pagination({ usual: Math.min(limits.list, limits.list_max), maximum: limits.list_max })

export const pagination = ({ usual, maximum }: { readonly usual: number; readonly maximum: number }) => ({
  query: {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum, default: usual })),
    offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
  },
  pageOf: ({ limit = usual, offset = 0 }: Partial<Page>): Page => ({ limit, offset }),
})
