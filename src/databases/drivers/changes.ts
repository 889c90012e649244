import type { SchemaStatements } from '#databases/drivers/management.ts'
import type { TableName } from '#databases/request/request.ts'

/**
 * Committed changes of tables (gateway.md 20, docs/decisions/0073-live-rows.md): each change at least once, those of one key in the order of
 * their commits. A change says which key was touched. The row itself is read anew, so that its reader sees what they may see.
 */
export type ChangeFeed = {
  /**
   * The change after which writers note their changes of the table, for `Management.run`; without statements where they do already. 400 for a
   * table without a primary key.
   */
  enable(table: TableName): Promise<SchemaStatements>
  /** The last one removes everything that the feed has in the database. */
  disable(table: TableName): Promise<SchemaStatements>
  /** The live tables, by the triggers that really are in the database and fire. */
  tables(): Promise<readonly LiveTable[]>
  /** Makes the triggers of a table again that note the columns of a former key, as those of a key with another name. */
  renew(table: TableName): Promise<void>
  /**
   * Everything that the policies of a live table read to judge a row, on a client with row-level security. Changes of the tables among it are noted from
   * the return on (503 where one is locked). `not_live`: the result of a policy can change without a noted change.
   */
  policies(table: TableName): Promise<PolicyReads | 'not_live'>
  /** The boundary of now: a read that begins later sees everything that was committed before it. */
  position(): Promise<Position>
  /** Everything that was committed after one boundary and before a new one. */
  read(after: Position): Promise<Batch | LostPosition>
  /**
   * Values of these columns by the JSON of the key, for the rows that there are now. They are for nobody to see. Undefined where several rows have
   * one key, as those of child tables may.
   */
  values(table: TableName, keys: readonly Key[], columns: readonly string[]): Promise<RowValues | undefined>
  /**
   * Deletes changes that every position of the last `keep` milliseconds has behind it. It waits for no writer, and no writer for it. False
   * where the database has no live tables.
   */
  prune(keep: number): Promise<boolean>
  /** For the operator: tables that are meant to be live and are not, or not for every writer. */
  problems(): Promise<readonly FeedProblem[]>
}

export type RowValues = ReadonlyMap<string, readonly (string | null)[]>

/** Opaque, of printable ASCII, at most 8 KiB. From a caller it may be any text: it then is at worst lost. */
export type Position = string

type LiveTable = {
  readonly table: TableName
  /** The columns of the primary key, in its order. */
  readonly key: readonly string[]
}

/** `why` begins with a verb. */
export type FeedProblem = { readonly table: TableName; readonly why: string; readonly isBroken: boolean }

export type PolicyReads = {
  /** Members of `request.claims`, or all of them. */
  readonly claims: readonly string[] | 'all'
  /** Other tables than that of the policies. */
  readonly tables: readonly TableName[]
  /** Every visible row has the value of a claim in one of these columns. Undefined: other rows may be visible too. */
  readonly owners?: readonly OwnerColumn[]
}

/** A column of uuid, and the claim that it is compared with. */
export type OwnerColumn = { readonly column: string; readonly claim: string }

export type Batch = {
  readonly position: Position
  /** One entry a table that has changed. */
  readonly tables: readonly TableChange[]
  /** Among them are tables with another structure, or other policies, than at the boundary before. */
  readonly isRestructured: boolean
  /** The age of the oldest change, from its write to this read; 0 without a change. */
  readonly lagSeconds: number
}

/** The events after the position cannot be told. The reader begins again with `position()`. */
export type LostPosition = { readonly lost: 'too_old' | 'epoch' | 'table_changed' }

export type TableChange = { readonly table: TableName } & (
  | { readonly keys: readonly KeyChange[] }
  /** All rows may have changed. */
  | { readonly reset: ResetReason }
)

export type ResetReason =
  | 'too_many'
  | 'truncated'
  /** The table has another structure, name, owner, privileges or triggers. */
  | 'table_changed'
  | 'policy_changed'
  /** A table that only policies read. */
  | 'watched'

/** The last change of a key in the batch. By then the row may have changed again: that comes with the next batch. */
export type KeyChange = { readonly op: 'insert' | 'update' | 'delete'; readonly key: Key }

export type Key = {
  /** Texts that the database reads as the values, in the order of the primary key. */
  readonly values: readonly string[]
  /** The same as a fetch writes it: `{"id":7}`. Equal keys have equal texts. */
  readonly json: string
}
