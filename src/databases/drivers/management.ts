import type { Catalogue, Index, Table } from '#databases/plan/catalogue.ts'
import type { TableName } from '#databases/request/request.ts'
import type { Failure } from '#kernel/errors.ts'

/** Changes of the structure (gateway.md 10): the nouns write the statements of a change, `run` makes it. */
export type Management = {
  /** Runs the statements in one transaction, and invalidates the catalogue. Throws 503 when a lock is not free in time. */
  run(statements: readonly string[], conditions?: ChangeConditions): Promise<void>
  /** Throws 400 for names of the service and of the database. */
  requireUnreserved(schema: string, name: string): void
  readonly tables: TableStatements
  readonly columns: ColumnStatements
  readonly indexes: IndexStatements
  readonly extensions: ExtensionStatements
  readonly functions: FunctionStatements
  /** On a client with row-level security. */
  readonly policies?: TablePolicies | undefined
  /** Types and methods that a definition may use. */
  readonly columnDataTypes: readonly string[]
  readonly indexMethods: readonly string[]
}

export type ChangeConditions = {
  /** Runs in the transaction before the statements. It locks what it reads, and throws a Failure to refuse the change. */
  readonly check?: (query: RunQuery) => Promise<void>
  /** Runs in the transaction after the statements, and throws a Failure to undo them. */
  readonly verify?: (query: RunQuery) => Promise<void>
  /** After the rollback: a more helpful failure, for example with the names of what depends on the object. */
  readonly explain?: (query: RunQuery, failure: Failure) => Promise<Failure>
  /** Longest time of one statement in milliseconds, instead of that of the client. */
  readonly timeout?: number
  /** Longest wait for one lock in milliseconds: others wait behind it. */
  readonly lockTimeout?: number
}

/** A change that `run` makes. Its definition has been checked. */
export type SchemaStatements = ChangeConditions & {
  readonly statements: readonly string[]
  /** Everything that CASCADE drops too, without parts of the dropped object. Runs in the transaction before the statements. */
  readonly alsoDrops?: (query: RunQuery) => Promise<readonly Dependent[]>
  readonly definition?: DefinitionChange
}

/** A statement of the gateway. Its names are qualified, and its values are bound. */
export type RunQuery = <Row extends object>(
  text: string,
  values: readonly unknown[],
) => Promise<readonly Row[]>

type TableStatements = {
  /** Closed to the roles of callers, until policies open it. */
  create(table: TableDefinition, callers: readonly string[]): Promise<SchemaStatements>
  /** All or nothing, in the order given. */
  edit(table: Table, edits: readonly TableEdit[]): Promise<SchemaStatements>
  drop(table: Table, how: Cascade): SchemaStatements
  /** Whether functions or policies of the database name one of these tables, which need not exist. */
  use(tables: readonly TableName[]): Promise<TableUse>
}

/** Functions, policies, routes or pipelines that name a table. */
export type TableUse = {
  readonly isNamed: boolean
  /** All but policies, which follow a column when it gets another name. */
  readonly isInCode: boolean
  /** Some of it may delete rows of what has this name. */
  readonly deletes: boolean
}

type ColumnStatements = {
  drop(table: Table, column: string, how: Cascade): SchemaStatements
}

type IndexStatements = {
  create(index: IndexDefinition): SchemaStatements
  drop(index: Index): SchemaStatements
}

type ExtensionStatements = {
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

type FunctionStatements = {
  list(filter: FunctionFilter): Promise<FunctionList>
  /** `bound`: on a client with row-level security, where a function runs as its caller. */
  upsert(ddl: string, how: { readonly bound: boolean }): Promise<FunctionChange>
  drop(named: FunctionName): Promise<FunctionChange>
}

export type FunctionFilter = {
  readonly schema: string | undefined
  /** A pattern of LIKE. */
  readonly nameLike: string | undefined
  /** Also functions of the system and of extensions. */
  readonly includeSystem: boolean
  readonly includeDefinition: boolean
  readonly limit: number
  readonly offset: number
}

export type FunctionList = { readonly functions: DescribedFunction[]; readonly total: number }

type DescribedFunction = {
  readonly schema_name: string
  readonly function_name: string
  readonly kind: 'function' | 'procedure' | 'aggregate' | 'window'
  readonly arguments: string
  readonly arg_types: string[]
  readonly returns: string | null
  readonly language: string
  readonly volatility: 'immutable' | 'stable' | 'volatile'
  readonly security_definer: boolean
  readonly owner: string
  readonly definition?: string | null
}

/** A function by the types of its input arguments, in their order. */
export type FunctionName = {
  readonly schema: string
  readonly name: string
  readonly argTypes: readonly string[]
}

export type FunctionChange = SchemaStatements & {
  readonly schema: string
  readonly name: string
  readonly definition: DefinitionChange
}

/** The definition of a function before and after a change. `run` fills it in: before its statements and after them. */
export type DefinitionChange = { signature: string; before: string | null; after: string | null }

/** Row-level security of tables. */
export type TablePolicies = {
  read(table: Table): Promise<TableSecurity>
  /** Policies and rights of the two roles as a whole. The catalogue has the tables that expressions may read. */
  set(table: Table, asked: SecurityDefinition, catalogue: Catalogue): Promise<SecurityStatements>
}

export type SecurityStatements = SchemaStatements & {
  /**
   * Names of the policies with an expression that the change removes, also of presets whose expression was changed in the database, and of
   * restrictions on policies of others.
   */
  readonly lostExpressions: readonly string[]
  /** Policies of others for which a role of callers had no right until now. */
  readonly awakened: readonly string[]
  /** The state after the change, which `run` fills in within its transaction. */
  readonly result: { security?: TableSecurity }
}

export type SecurityDefinition = {
  readonly enabled: boolean
  readonly policies: readonly PolicyDefinition[]
  /** Also removes policies that others have made. */
  readonly replace: boolean
}

export type PolicyPreset = 'owner' | 'organization' | 'public_read' | 'signed_in_read'

export type PolicyDefinition =
  | { readonly preset: 'owner'; readonly column?: string }
  | {
      readonly preset: 'organization'
      readonly column?: string
      /** A column that holds the session's user on insert and never changes. */
      readonly insert_only_as_self?: string
    }
  | { readonly preset: 'public_read' | 'signed_in_read' }
  | {
      readonly name: string
      readonly command: 'select' | 'insert' | 'update' | 'delete' | 'all'
      readonly roles: string[]
      readonly using?: string
      readonly check?: string
    }

export type TableSecurity = {
  readonly enabled: boolean
  readonly policies: PolicyDefinition[]
  /** Made by others. */
  readonly otherPolicies: OtherPolicy[]
  /** Defaults that presets have replaced. Each comes back when its preset goes, unless the column has another default by then. */
  readonly replacedDefaults: { readonly column: string; readonly default_expression: string }[]
  /** Privileges of the two roles of callers, also through PUBLIC. */
  readonly grants: { readonly role: string; readonly privileges: string[] }[]
}

export type OtherPolicy = {
  readonly name: string
  readonly command: 'select' | 'insert' | 'update' | 'delete' | 'all'
  readonly permissive: boolean
  readonly roles: string[]
  readonly using: string | null
  readonly check: string | null
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
