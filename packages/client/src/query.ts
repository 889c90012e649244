export { type Invalidated, type Invalidating, invalidate } from './query/invalidate.ts'
export { type Queryable, type QueryOptions, queryOptions } from './query/query-options.ts'
