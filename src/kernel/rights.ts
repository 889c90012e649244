export type Action = 'read' | 'write' | 'delete'
export type TableRight = { readonly schema: string; readonly table: string; readonly action: Action }

/**
 * Rights of API keys, and of the roles of operators. A right is fixed (`management.read`), a table right (`users.read`, `sales.orders.write`)
 * or a wildcard for these (gateway.md 3).
 */
export const FIXED_RIGHTS = {
  'gateway.read': 'Read every table',
  'gateway.write': 'Insert into and update every table',
  'gateway.delete': 'Delete from every table',
  'gateway.query': 'Run SQL',
  'gateway.query.read': 'Run one read-only SQL statement',
  'gateway.rpc.execute': 'Call functions',
  'gateway.storage_proxy': 'List, sign and delete objects of S3-compatible servers',
  'gateway.bypass_row_level_security': "Act as the client's own role, without row-level security",
  'pipelines.run': 'Run pipelines, whose tables need their own rights, and list the named ones',
  'management.read': 'Read capabilities and schema',
  'management.tables.write':
    'Create tables, and change those whose rows the key may read and write; a foreign key also needs the right to read the table that it refers to',
  'management.tables.drop': 'Drop tables; with `cascade`, the rights to all else that goes too',
  'management.columns.drop': 'Drop columns; with `cascade`, the rights to all else that goes too',
  'management.indexes.write': 'Create indexes; a unique one also needs the right to read the table',
  'management.indexes.drop': 'Drop indexes',
  'management.extensions.write': 'Install extensions',
  'management.functions.read': 'List functions, with their definitions',
  'management.functions.write':
    'Run code as the client’s role: create and replace functions, and write expressions of policies, which decide what callers see',
  'management.functions.drop': 'Drop functions',
} as const satisfies Record<string, string>

/** Schemas whose table rights would look like fixed rights. Only rights to every table and wildcards grant access to them. */
const RESERVED_SCHEMAS = new Set(['gateway', 'management', 'pipelines'])

/** The name of a table right: `users.read` in `public`, `sales.orders.read` in other schemas. */
export const nameOfRight = ({ schema, table, action }: TableRight): string =>
  schema === 'public' ? `${table}.${action}` : `${schema}.${table}.${action}`

/** Whether the rights grant the action on the table. `users.*` means table `users` in `public`, never a schema. */
export function grantsTable(rights: readonly string[], asked: TableRight): boolean {
  if (rights.some((right) => EVERY_TABLE[asked.action].has(right))) return true
  const sufficient = rightsOfTable(asked)
  return rights.some((right) => sufficient.includes(right))
}

const everyTable = (action: Action) => new Set([`gateway.${action}`, 'gateway.*', `*.${action}`, '*'])
const EVERY_TABLE = {
  read: everyTable('read'),
  write: everyTable('write'),
  delete: everyTable('delete'),
}

function rightsOfTable(asked: TableRight): readonly string[] {
  const { schema, table } = asked
  // A table name with a dot would be ambiguous, so only rights to every table grant access to it.
  if (schema.includes('.') || table.includes('.')) return []
  const exact = nameOfRight(asked)
  if (RESERVED_SCHEMAS.has(schema) || RESERVED_SCHEMAS.has(exact.split('.', 1)[0] ?? '')) return []
  return [exact, schema === 'public' ? `${table}.*` : `${schema}.${table}.*`]
}

/**
 * No wildcard includes it: even a key with all other rights is subject to row-level security, which code that runs as the client's role would
 * pass by.
 */
const isNamedOnly = (right: keyof typeof FIXED_RIGHTS, hasPolicies: boolean): boolean =>
  right === 'gateway.bypass_row_level_security' || (hasPolicies && right === 'management.functions.write')

type RightsOn = {
  /** Management rights, even through `*`, require a bound key. */
  readonly isBound: boolean
  /** The client has row-level security. */
  readonly hasPolicies: boolean
}

/** Whether the rights include the fixed right. */
export function grantsFixed(
  rights: readonly string[],
  asked: keyof typeof FIXED_RIGHTS,
  { isBound, hasPolicies }: RightsOn,
): boolean {
  if (asked.startsWith('management.') && !isBound) return false
  if (isNamedOnly(asked, hasPolicies)) return rights.includes(asked)
  const parts = asked.split('.')
  const accepted = new Set([
    '*',
    asked,
    ...parts.slice(1).map((_, index) => `${parts.slice(0, index + 1).join('.')}.*`),
  ])
  return rights.some((right) => accepted.has(right))
}

/** A name in a right: an identifier without dots, which separate the parts, and without invisible characters. */
const NAME = /^[^.*\s\p{C}]{1,63}$/u

/** Whether a key can have this right. */
export function isRight(text: string): boolean {
  if (text === '*' || Object.hasOwn(FIXED_RIGHTS, text)) return true
  const parts = text.split('.')
  const last = parts.pop() ?? ''
  if (!['*', 'read', 'write', 'delete'].includes(last) || parts.length === 0) return false
  if (parts[0] === '*') return parts.length === 1 && last !== '*'
  if (RESERVED_SCHEMAS.has(parts[0] ?? '')) return last === '*' && isPrefixOfFixed(parts)
  return parts.length <= 2 && parts.every((part) => NAME.test(part))
}

/** All rights on a client. `*` does not include the second, nor the third with row-level security (`isNamedOnly`). */
export const EVERY_RIGHT = ['*', 'gateway.bypass_row_level_security', 'management.functions.write'] as const

/** Whether rights on a client allow all that the other right allows there, with row-level security and without. */
export const coversRight = (held: readonly string[], other: string): boolean =>
  ACTIONS.every(
    (action) => !isOfEveryTable(other, action) || held.some((right) => isOfEveryTable(right, action)),
  ) &&
  OF_NO_TABLE.every((name) =>
    [false, true].every((hasPolicies) => {
      const on = { isBound: true, hasPolicies }
      return !grantsFixed([other], name, on) || grantsFixed(held, name, on)
    }),
  ) &&
  tableRightsIn(other).every((right) => grantsTable(held, right))

const ACTIONS: readonly Action[] = ['read', 'write', 'delete']

const isOfEveryTable = (right: string, action: Action): boolean => EVERY_TABLE[action].has(right)

/** The fixed rights but `gateway.read`, `.write` and `.delete`. */
const OF_NO_TABLE = (Object.keys(FIXED_RIGHTS) as (keyof typeof FIXED_RIGHTS)[]) // the keys of the object
  .filter((name) => !ACTIONS.some((action) => isOfEveryTable(name, action)))

/** The rights to one table that a right of table form contains. */
function tableRightsIn(right: string): readonly TableRight[] {
  const parts = right.split('.').slice(0, -1)
  const [one = '*', two] = parts
  if (one === '*' || RESERVED_SCHEMAS.has(one)) return []
  const table = two === undefined ? { schema: 'public', table: one } : { schema: one, table: two }
  return ACTIONS.map((action) => ({ ...table, action })).filter((asked) => grantsTable([right], asked))
}

/** Everything that rights on a client open, once: every table, further tables by name, and operations without a table. */
type Opened = {
  readonly everyTable: Action[]
  readonly tables: { table: string; actions: Action[] }[]
  readonly operations: readonly (keyof typeof FIXED_RIGHTS)[]
}

export function openedBy(rights: readonly string[], on: RightsOn): Opened {
  const everyTable = ACTIONS.filter((action) => rights.some((right) => isOfEveryTable(right, action)))
  const tables = new Map<string, Set<Action>>()
  for (const { schema, table, action } of rights.flatMap(tableRightsIn)) {
    if (everyTable.includes(action)) continue
    const name = schema === 'public' ? table : `${schema}.${table}`
    tables.set(name, (tables.get(name) ?? new Set()).add(action))
  }
  return {
    everyTable,
    tables: [...tables].map(([table, actions]) => ({
      table,
      actions: ACTIONS.filter((action) => actions.has(action)),
    })),
    operations: OF_NO_TABLE.filter((name) => grantsFixed(rights, name, on)),
  }
}

const isPrefixOfFixed = (parts: readonly string[]): boolean =>
  Object.keys(FIXED_RIGHTS).some((right) => right.startsWith(`${parts.join('.')}.`))
