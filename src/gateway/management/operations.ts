import type { FIXED_RIGHTS } from '../keys/rights.ts'

/** All management operations with their rights, for routes and capabilities. */
export const OPERATIONS = {
  capabilities: { method: 'GET', path: '/management/capabilities', right: 'management.read' },
  create_table: { method: 'POST', path: '/management/tables', right: 'management.tables.write' },
} as const satisfies Record<string, { method: string; path: string; right: keyof typeof FIXED_RIGHTS }>
