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
  member: ['update', 'delete'],
  organization: ['delete'],
  passkey: ['delete'],
  public_route: ['update', 'delete'],
  session: ['update', 'delete'],
  user: ['update', 'delete'],
  webhook: ['insert', 'update', 'delete'],
}

/** Calls `touched` when a statement may change what caches hold, also in a `with` or in SQL of ours. */
export const watchFollowedTables = (touched: () => void): KyselyPlugin => ({
  transformQuery({ node }) {
    if (isFollowed(node)) touched()
    return node
  },
  transformResult: async ({ result }) => result,
})

// The kind of a node tells its type.
function isFollowed(node: OperationNode): boolean {
  switch (node.kind) {
    case 'RawNode':
      return isFollowedText(node as RawNode)
    case 'InsertQueryNode':
      return isChange('insert', (node as InsertQueryNode).into) || hasFollowed(node as InsertQueryNode)
    case 'UpdateQueryNode':
      return isChange('update', (node as UpdateQueryNode).table) || hasFollowed(node as UpdateQueryNode)
    case 'DeleteQueryNode': {
      const { from } = node as DeleteQueryNode
      return from.froms.some((table) => isChange('delete', table)) || hasFollowed(node as DeleteQueryNode)
    }
    default:
      return hasFollowed(node)
  }
}

type WithExpressions = { readonly with?: { readonly expressions: readonly CommonTableExpressionNode[] } }

const hasFollowed = (node: OperationNode & WithExpressions): boolean =>
  node.with?.expressions.some(({ expression }) => isFollowed(expression)) === true

/** With an alias, the table is a part of the node. */
function isChange(
  change: Change,
  named: (OperationNode & { readonly node?: OperationNode }) | undefined,
): boolean {
  const table = named?.node ?? named
  return table !== undefined && TableNode.is(table) && isSent(change, table.table.identifier.name)
}

const SENT: ReadonlySet<string> = new Set(
  Object.entries(FOLLOWED_TABLES).flatMap(([table, changes]) =>
    changes.map((change) => `${change} ${table}`),
  ),
)

const isSent = (change: string, table: string): boolean => SENT.has(`${change} ${table}`)

const CHANGE = /\b(insert) +into|\b(update)|\b(delete) +from/
const STATEMENTS = new RegExp(`(?:${CHANGE.source})\\s+service\\."?(\\w+)`, 'g')

const isFollowedText = ({ sqlFragments, parameters }: RawNode): boolean =>
  sqlFragments.some(sendsAsText) || parameters.some(isFollowed)

/** By text, since a statement of ours comes again with each request. */
const judged = new Map<string, boolean>()
/** Far above the number of our own texts. */
const MAX_JUDGED = 2_000

function sendsAsText(text: string): boolean {
  const known = judged.get(text)
  if (known !== undefined) return known
  const sends = [...text.matchAll(STATEMENTS)].some(([, ...found]) => {
    const [change, table] = found.filter((part) => part !== undefined)
    return change !== undefined && table !== undefined && isSent(change, table)
  })
  if (judged.size < MAX_JUDGED) judged.set(text, sends)
  return sends
}
