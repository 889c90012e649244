/** Public routes of the client `app`, whose callers need no key. */
export const ROUTES = {
  /** By the policies for strangers. */
  docs: { route_key: 'docs', table_name: 'doc', columns: ['id', 'n'] },
  /** By the record alone. */
  gifts: {
    route_key: 'gifts',
    run_as: 'owner',
    table_name: 'gift',
    columns: ['id', 'n', 'text'],
    conditions: [{ operator: 'gt', column: 'n', value: 2 }],
  },
  /** Of the session that its caller presents. */
  items: { route_key: 'items', table_name: 'item' },
} as const

export const OF_ALL_ROUTES = {
  client_name: 'app',
  requires_key: false,
  allowed_ops: ['fetch', 'subscribe'],
  rate_limit: { requests: 1_000_000, window_seconds: 60 },
}
