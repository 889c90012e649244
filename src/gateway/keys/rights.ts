import type { Action, TableRight } from '#databases/plan/rights.ts'

/**
 * What a key may do. A right is fixed (`management.read`), or of table form (`users.read`, `sales.orders.write`), or a
 * wildcard over those (gateway.md 3).
 */
export const FIXED_RIGHTS = {
  'gateway.read': 'Read every table',
  'gateway.write': 'Insert into and update every table',
  'gateway.delete': 'Delete from every table',
  'gateway.query': 'Run SQL',
  'gateway.query.read': 'Run one statement of SQL that only reads',
  'gateway.rpc.execute': 'Call functions',
  'gateway.bypass_row_level_security': "Act as the client's own role where sessions have roles",
  'management.read': 'See capabilities and structure',
  'management.tables.write': 'Create and change tables',
} as const satisfies Record<string, string>

/** Schemas whose tables would read like fixed rights; only `gateway.…` or a wildcard reaches them. */
const RESERVED_SCHEMAS = new Set(['gateway', 'management', 'pipelines'])

/** `users.read`, outside `public` `sales.orders.read`. */
export const nameOfRight = ({ schema, table, action }: TableRight): string =>
  schema === 'public' ? `${table}.${action}` : `${schema}.${table}.${action}`

/** May a key with these rights do this to that table? `users.*` is the table `users` of `public`, and never a schema. */
export function grantsTable(rights: readonly string[], asked: TableRight): boolean {
  if (rights.some((right) => EVERY_TABLE[asked.action].has(right))) return true
  const own = rightsOfTable(asked)
  return rights.some((right) => own.includes(right))
}

const everyTable = (action: Action) => new Set([`gateway.${action}`, 'gateway.*', `*.${action}`, '*'])
const EVERY_TABLE = {
  read: everyTable('read'),
  write: everyTable('write'),
  delete: everyTable('delete'),
}

function rightsOfTable(asked: TableRight): readonly string[] {
  const { schema, table } = asked
  // A name with a dot in it would read like two names: only what reaches every table reaches that one.
  if (schema.includes('.') || table.includes('.')) return []
  const own = nameOfRight(asked)
  if (RESERVED_SCHEMAS.has(schema) || RESERVED_SCHEMAS.has(own.split('.', 1)[0] ?? '')) return []
  return [own, schema === 'public' ? `${table}.*` : `${schema}.${table}.*`]
}

/** No wildcard gives it: who has every other right is still bound by the policies of the database. */
const NAMED_ONLY: keyof typeof FIXED_RIGHTS = 'gateway.bypass_row_level_security'

/** May a key with these rights do this? Rights of management, also through `*`, count only on a key bound to a client. */
export function grantsFixed(
  rights: readonly string[],
  asked: keyof typeof FIXED_RIGHTS,
  isBound: boolean,
): boolean {
  if (asked.startsWith('management.') && !isBound) return false
  if (asked === NAMED_ONLY) return rights.includes(asked)
  const parts = asked.split('.')
  const accepted = new Set([
    '*',
    asked,
    ...parts.slice(1).map((_, index) => `${parts.slice(0, index + 1).join('.')}.*`),
  ])
  return rights.some((right) => accepted.has(right))
}

/** A name in a right: an identifier without a dot, so that the parts can be told apart, and with nothing invisible. */
const NAME = /^[^.*\s\p{C}]{1,63}$/u

/** Can a key be given this right? */
export function isRight(text: string): boolean {
  if (text === '*' || Object.hasOwn(FIXED_RIGHTS, text)) return true
  const parts = text.split('.')
  const last = parts.pop() ?? ''
  if (!['*', 'read', 'write', 'delete'].includes(last) || parts.length === 0) return false
  if (parts[0] === '*') return parts.length === 1 && last !== '*'
  if (RESERVED_SCHEMAS.has(parts[0] ?? '')) return last === '*' && isPrefixOfFixed(parts)
  return parts.length <= 2 && parts.every((part) => NAME.test(part))
}

const isPrefixOfFixed = (parts: readonly string[]): boolean =>
  Object.keys(FIXED_RIGHTS).some((right) => right.startsWith(`${parts.join('.')}.`))
