import type { Failure } from '#kernel/errors.ts'

/** Changes of the structure (gateway.md 10): the nouns write the statements of a change, `run` makes it. */
export type Management = {
  /** Runs the statements in one transaction, and invalidates the catalogue. Throws 503 when a lock is not free in time. */
  run(statements: readonly string[], conditions?: ChangeConditions): Promise<void>
  readonly tables: TableStatements
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
