import {
  type CommonTableExpressionNode,
  type DeleteQueryNode,
  type InsertQueryNode,
  type KyselyPlugin,
  type OperationNode,
  type RawNode,
  TableNode,
  type UpdateQueryNode,
} from 'kysely'

type Change = 'insert' | 'update' | 'delete'

/**
 * The tables that caches follow (coherence.ts), with the statements on them that send a notification: those of the triggers, and those that
 * lead to one by a foreign key or by a trigger of their own. A test compares it with the migrations.
 */
export const FOLLOWED_TABLES: Readonly<Record<string, readonly Change[]>> = {
  api_key: ['update', 'delete'],
  api_key_config: ['insert', 'update', 'delete'],
  backup_job: ['update', 'delete'],
  database_client: ['insert', 'update', 'delete'],
  jwt_key: ['insert', 'update', 'delete'],
  member: ['update', 'delete'],
  organization: ['delete'],
  passkey: ['delete'],
  protected_client: ['insert', 'update', 'delete'],
  public_route: ['update', 'delete'],
  session: ['update', 'delete'],
  user: ['update', 'delete'],
  webhook: ['insert', 'update', 'delete'],
}

/** Kinds of rows that the statements of a transaction have written. */
export type Written = {
  /** Something that caches hold, perhaps. */
  isFollowed: boolean
  /** Something that the audit trail tells of. */
  isChanged: boolean
  /** A row of the audit trail. */
  isTold: boolean
}

/** Notes what each statement writes, also in a `with` or in SQL of ours. */
export const watchStatements = (written: Written): KyselyPlugin => ({
  transformQuery({ node }) {
    forEachChange(node, (change) => note(written, change))
    return node
  },
  transformResult: async ({ result }) => result,
})

function note(written: Written, change: string): void {
  if (change === 'insert audit_event') written.isTold = true
  else if (!QUIET.has(change.slice(change.indexOf(' ') + 1))) written.isChanged = true
  if (SENT.has(change)) written.isFollowed = true
}

/** Tables that no act is about: one-time tokens, counts of wrong codes, outboxes, what browsers keep. */
const QUIET = new Set([
  'verification',
  'wrong_code',
  'wrong_mail_code',
  'webhook_event',
  'webhook_delivery',
  'known_device',
  'trusted_device',
])

/** A change and its table, such as `delete session`. */
type Visit = (change: string) => void

// The kind of a node tells its type.
function forEachChange(node: OperationNode & WithExpressions, visit: Visit): void {
  if (node.kind === 'RawNode') {
    const { sqlFragments, parameters } = node as RawNode
    for (const text of sqlFragments) changesIn(text).forEach(visit)
    for (const parameter of parameters) forEachChange(parameter, visit)
    return
  }
  if (node.kind === 'InsertQueryNode') visitTable('insert', (node as InsertQueryNode).into, visit)
  if (node.kind === 'UpdateQueryNode') visitTable('update', (node as UpdateQueryNode).table, visit)
  if (node.kind === 'DeleteQueryNode')
    for (const table of (node as DeleteQueryNode).from.froms) visitTable('delete', table, visit)
  for (const { expression } of node.with?.expressions ?? []) forEachChange(expression, visit)
}

type WithExpressions = { readonly with?: { readonly expressions: readonly CommonTableExpressionNode[] } }

/** With an alias, the table is a part of the node. */
function visitTable(
  change: Change,
  named: (OperationNode & { readonly node?: OperationNode }) | undefined,
  visit: Visit,
): void {
  const table = named?.node ?? named
  if (table !== undefined && TableNode.is(table)) visit(`${change} ${table.table.identifier.name}`)
}

const SENT: ReadonlySet<string> = new Set(
  Object.entries(FOLLOWED_TABLES).flatMap(([table, changes]) =>
    changes.map((change) => `${change} ${table}`),
  ),
)

const CHANGE = /\b(insert) +into|\b(update)|\b(delete) +from/
const STATEMENTS = new RegExp(`(?:${CHANGE.source})\\s+service\\."?(\\w+)`, 'g')

/** By text, since a statement of ours comes again with each request. */
const judged = new Map<string, readonly string[]>()
/** Far above the number of our own texts. */
const MAX_JUDGED = 2_000

function changesIn(text: string): readonly string[] {
  const known = judged.get(text)
  if (known !== undefined) return known
  const changes = [...text.matchAll(STATEMENTS)].map(([, ...found]) =>
    found.filter((part) => part !== undefined).join(' '),
  )
  if (judged.size < MAX_JUDGED) judged.set(text, changes)
  return changes
}
