import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import type { Catalogue, Index } from '#databases/plan/catalogue.ts'
import type { CountPlan, DeletePlan, InsertPlan, PlanOf, ReadPlan, UpdatePlan } from '#databases/plan/plan.ts'
import type { Rights } from '#databases/plan/rights.ts'
import type { DataRequest, Json, ReadRequest, Row } from '#databases/request/request.ts'
import type { DriverName } from '#kernel/config/addresses.ts'
import type { Config } from '#kernel/config/config.ts'
import type { ControlServer } from '#kernel/db/control-server.ts'
import type { Log } from '#kernel/log.ts'

/**
 * What a backend can do for the gateway. A request is first planned: the rights of everything that it touches are checked, every name
 * is looked up (403, 400 and 404 come from there). Then it is run.
 * `on` runs it in an open transaction; without it the driver picks a connection, and ends what runs there when its caller has left
 * (`presence`).
 * Every failure is a `Failure` of databases/failures.ts; anything else thrown is a bug.
 */
export type Driver = Backend & {
  plan<R extends DataRequest>(request: R, rights: Rights): Promise<PlanOf<R>>

  select(plan: ReadPlan, on?: OpenTransaction, presence?: Presence): Promise<RowsResult>
  count(plan: CountPlan, on?: OpenTransaction, presence?: Presence): Promise<number>
  /** Writes are committed when they answer, and their rows are here whole. */
  insert(plan: InsertPlan, on?: OpenTransaction, presence?: Presence): Promise<WriteResult>
  update(plan: UpdatePlan, on?: OpenTransaction, presence?: Presence): Promise<WriteResult>
  delete(plan: DeletePlan, on?: OpenTransaction, presence?: Presence): Promise<WriteResult>

  /** Row-level security. */
  readonly policies?: Policies | undefined

  /** The structure has changed: the next plan reads the catalogue again. */
  invalidate(): void
  /** The same, done through another client or process, to this database or, with an empty name, to any. Absent where none is told of. */
  structureChanged?(database: string): void

  stats(): DriverStats
  close(): Promise<void>
}

/** The part of a driver that a caller of the gateway carries: all but the way to rows, which is `prepare` (gateway/prepare.ts). */
export type Backend = Abilities & {
  readonly name: DriverName
  catalogue(): Promise<Catalogue>
  /**
   * Names the database as its server knows it, so that two clients of one database say the same; asked once. Undefined where the
   * server does not tell.
   */
  identity(): Promise<string | undefined>
  /** The server's version (`15.18`) after a statement that shows it alive; a Failure when it is not. */
  probe(): Promise<string>
}

/** What only some backends can do. A driver leaves out what its backend cannot; `requireAbility` asks for it (abilities.ts). */
export type Abilities = { readonly [A in Ability]?: AbilityOf[A] | undefined }
export type Ability = keyof AbilityOf
export type AbilityOf = {
  /** Runs SQL whose text is the caller's own, on a connection that is cleaned before another caller has it. */
  sql: (request: SqlRequest) => Promise<SqlResult>
  /** Calls a function; its rows are read like those of a table. */
  call: (request: CallRequest) => Promise<RowsResult>
  transaction: RunTransaction
  /** Answers stored under an idempotency key, in the client's own database (gateway.md 4). */
  idempotency: IdempotencyStore
  management: Management
  /** By schema, table and name. Plans do not need indexes, so they are not in the catalogue. */
  indexes: () => Promise<readonly Index[]>
}

/**
 * One connection and one transaction for the work: committed when it returns, rolled back when it throws, also for a failure of
 * one statement. The work may run twice, the first time without effect. What it reads must be read to its end there.
 */
export type RunTransaction = <T>(
  work: (on: OpenTransaction) => Promise<T>,
  options: TransactionOptions,
) => Promise<T>

/** Changes of the structure (gateway.md 10). */
export type Management = {
  /** The statements that make a table, for `run`. Throws what is wrong with the definition. */
  createTable(table: TableDefinition): Promise<readonly string[]>
  /** All of the statements or none; the catalogue is forgotten afterwards. */
  run(statements: readonly string[]): Promise<void>
  /** What a definition may name. */
  readonly columnDataTypes: readonly string[]
  readonly indexMethods: readonly string[]
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

export type Policies = {
  /**
   * This driver for one caller: data operations and functions run as that role and with those claims, without it as the client's own
   * role.
   */
  as(persona: Persona): Driver
}

/** Who waits for an answer. What runs for them is cancelled when they have left; without one nothing ends it but its time. */
export type Presence = {
  hasLeft(): boolean
  /** Aborts then. A read by key never asks for it, so it is made here, and not with the request. */
  signal(): AbortSignal
}

/** As whom an operation runs (gateway.md 19). */
export type Persona = {
  /** A role of the database; `none` is the client's own. */
  readonly role: string
  /** JSON that policies read by `current_setting('request.claims')`. */
  readonly claims: string
}

/** Which roles callers of a client have in its database. */
export type RowLevelSecurity = { readonly anonymousRole: string; readonly signedInRole: string }

/** The login of callers' own SQL. */
export type SqlRole = { readonly name: string; readonly password: string }

/** The connection of an open transaction: opaque here, made and used by the same driver. */
export type OpenTransaction = object

export type TransactionOptions = {
  readonly isolation?: Isolation
  readonly readOnly?: boolean
  readonly presence?: Presence | undefined
}
export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

export type IdempotencyStore = {
  /** The answer stored under this key, unless it is older than `since`. Creates the table when there is none. */
  find(key: string, since: Date, presence?: Presence): Promise<StoredAnswer | undefined>
  /** Takes the key in a transaction. Waits for another that has it; false when that one was committed. */
  claim(on: OpenTransaction, key: string, as: { body: string; at: Date; since: Date }): Promise<boolean>
  store(on: OpenTransaction, key: string, answer: string): Promise<void>
}

export type StoredAnswer = { readonly body: string; readonly answer: string }

export type RowsResult = {
  /**
   * JSON text of the row array in UTF-8. An array: all of it is here. Else a stream with back-pressure, which holds a connection:
   * read it to its end or leave the loop (`return()` gives the connection back).
   */
  readonly json: readonly Buffer[] | AsyncIterable<Buffer>
  /** Known at once with an array, with a stream after its end; asked earlier it throws. */
  facts(): RowsFacts
}

export type RowsFacts = {
  readonly rows: number
  /** No limit was given and it cut rows. */
  readonly hasMore: boolean
  /** Rows that match without limit and offset; only when the plan asked for `count`. */
  readonly total: number | undefined
}

export type WriteResult = {
  readonly json: readonly Buffer[]
  readonly affected: number
  readonly rows: number
  /** More rows were changed than an answer may hold: the first ones are in it. */
  readonly truncated: boolean
  readonly total: number | undefined
}

export type SqlRequest = {
  readonly text: string
  /** With these, even none, the text is exactly one statement. */
  readonly values: readonly Json[] | undefined
  /** One statement that reads, in a transaction that only reads. */
  readonly readOnly: boolean
  /** Functions that may do more than read are refused too: the caller has no right to more. */
  readonly onlyReads?: boolean
  /** Where names without a schema are looked for. */
  readonly schema: string | undefined
  /** Refused when the client's database has another name. */
  readonly database: string | undefined
  /** One row more is `result_too_large`, and then nothing has happened. */
  readonly maxRows: number
  readonly presence: Presence
}

export type CallRequest = {
  /** The function, as the table that is read. */
  readonly read: ReadRequest
  /** By name. */
  readonly arguments: Row
  /** They come from an address: the database converts their text, also that of JSON. */
  readonly areTexts: boolean
  /** The function may not write. */
  readonly readOnly: boolean
  readonly presence: Presence
}

export type SqlResult = {
  /** The rows of the last statement. */
  readonly json: readonly Buffer[]
  readonly rows: number
  /** Rows changed by all statements. */
  readonly affected: number
  readonly statements: number
}

export type DriverStats = {
  readonly total: number
  readonly idle: number
  readonly waiting: number
  readonly circuit: 'closed' | 'open' | 'half_open'
}

/** What every driver is made with, beside the settings of its client. */
export type DriverMaking = {
  readonly config: Config
  readonly log: Log
  /** Whose roles no client may be on that server. */
  readonly controlServer?: () => Promise<ControlServer | undefined>
  /** Memory of the process for answers that are read ahead of slow readers. */
  readonly readAhead?: () => MemoryBudget
}

export type DriverSettings = {
  readonly name: string
  readonly driver: DriverName
  readonly url: string
  readonly readOnly: boolean
  /** Milliseconds, as all of these. */
  readonly connect_timeout: number
  readonly statement_timeout: number
  readonly idle_timeout: number
  readonly max_connections: number
  readonly sql_connections: number
  readonly max_waiting: number
  readonly rowLevelSecurity?: RowLevelSecurity | undefined
  readonly sqlRole?: SqlRole | undefined
}

export type MakeDriver = (making: DriverMaking, settings: DriverSettings) => Driver
