import type { Index, Table } from '#databases/plan/catalogue.ts'
import type { Failure } from '#kernel/errors.ts'

/** Changes of the structure (gateway.md 10): the nouns write the statements of a change, `run` makes it. */
export type Management = {
  /** Runs the statements in one transaction, and invalidates the catalogue. Throws 503 when a lock is not free in time. */
  run(statements: readonly string[], conditions?: ChangeConditions): Promise<void>
  readonly tables: TableStatements
  readonly columns: ColumnStatements
  readonly indexes: IndexStatements
  readonly extensions: ExtensionStatements
  /** Types and methods that a definition may use. */
  readonly columnDataTypes: readonly string[]
  readonly indexMethods: readonly string[]
}

export type ChangeConditions = {
  /** Runs in the transaction before the statements. It locks what it reads, and throws a Failure to refuse the change. */
  readonly check?: (query: RunQuery) => Promise<void>
  /** After the rollback: a more helpful failure, for example with the names of what depends on the object. */
  readonly explain?: (query: RunQuery, failure: Failure) => Promise<Failure>
  /** Longest time of one statement in milliseconds, instead of that of the client. */
  readonly timeout?: number
}

/** A change, for `run`. The function that writes it has thrown what is wrong with its definition. */
export type SchemaStatements = ChangeConditions & { readonly statements: readonly string[] }

/** A statement of the gateway. Its names are qualified, and its values are bound. */
export type RunQuery = <Row extends object>(
  text: string,
  values: readonly unknown[],
) => Promise<readonly Row[]>

export type TableStatements = {
  create(table: TableDefinition): Promise<SchemaStatements>
  /** All or nothing, in the order given. */
  edit(table: Table, edits: readonly TableEdit[]): Promise<SchemaStatements>
  drop(table: Table, how: Cascade): SchemaStatements
}

export type ColumnStatements = {
  drop(table: Table, column: string, how: Cascade): SchemaStatements
}

export type IndexStatements = {
  create(index: IndexDefinition): SchemaStatements
  drop(index: Index): SchemaStatements
}

export type ExtensionStatements = {
  install(extension: ExtensionDefinition): SchemaStatements
  /** Undefined when it is not installed. */
  find(name: string): Promise<InstalledExtension | undefined>
}

/** Without `cascade`, nothing is dropped when other objects depend on this one: 409 with `Dependent`s in `details.dependents`. */
export type Cascade = { readonly cascade: boolean }

/** An object that depends on another one, and the table that it belongs to; null for an object without a table. */
export type Dependent = {
  readonly type: string
  readonly schema_name: string | null
  readonly table_name: string | null
  readonly name: string
}

/** A table to create. */
export type TableDefinition = {
  readonly schema: string
  readonly table: string
  readonly columns: readonly NewColumn[]
}

export type NewColumn = {
  readonly name: string
  readonly data_type: string
  readonly nullable?: boolean | undefined
  readonly default_expression?: string | undefined
  readonly primary_key?: boolean | undefined
  readonly unique?: boolean | undefined
  readonly references?:
    | { readonly table: string; readonly column: string; readonly on_delete?: string | undefined }
    | undefined
}

export type TableEdit =
  | { readonly operation: 'add_column'; readonly column: NewColumn }
  | { readonly operation: 'rename_column'; readonly column: string; readonly newName: string }
  | { readonly operation: 'set_default'; readonly column: string; readonly expression: string }
  | { readonly operation: 'alter_type'; readonly column: string; readonly dataType: string }
  | {
      readonly operation: 'drop_default' | 'set_not_null' | 'drop_not_null'
      readonly column: string
    }
  | { readonly operation: 'rename_table'; readonly newName: string }

export type IndexDefinition = {
  readonly table: Table
  readonly name: string
  readonly columns: readonly string[]
  readonly unique: boolean
  readonly method: string
}

export type ExtensionDefinition = { readonly name: string; readonly schema: string }
export type InstalledExtension = { readonly schema: string; readonly version: string }
