import type { ChangeFeed } from '#databases/drivers/changes.ts'
import type { Management } from '#databases/drivers/management.ts'
import type { MemoryBudget } from '#databases/drivers/memory-budget.ts'
import type { Catalogue, ConstraintDefinition, Index, IndexName } from '#databases/plan/catalogue.ts'
import type { DeclaredTypes } from '#databases/plan/declared-types.ts'
import type { CountPlan, DeletePlan, InsertPlan, PlanOf, ReadPlan, UpdatePlan } from '#databases/plan/plan.ts'
import type { Rights } from '#databases/plan/rights.ts'
import type { DataRequest, Json, ReadRequest, Row } from '#databases/request/request.ts'
import type { DriverName } from '#kernel/config/addresses.ts'
import type { Config } from '#kernel/config/config.ts'
import type { ControlServer } from '#kernel/db/control-server.ts'
import type { Log } from '#kernel/log.ts'

/**
 * The operations of a backend. A request is first planned: all rights are checked and every name is looked up (the source of 403, 400 and
 * 404). Then the plan is run. `on` runs it in an open transaction; without it the driver picks a connection, and cancels the statement when
 * the caller has left (`presence`). Every failure is a `Failure` of databases/failures.ts; anything else thrown is a bug.
 */
export type Driver = Backend & {
  plan<R extends DataRequest>(request: R, rights: Rights): Promise<PlanOf<R>>

  select(plan: ReadPlan, on?: OpenTransaction, presence?: Presence): Promise<RowsResult>
  /** The same rows as CSV. Absent where a backend has JSON, which csv-lines.ts converts. */
  selectCsv?(plan: ReadPlan, presence?: Presence): Promise<LinesResult>
  /** `stream` as CSV. */
  streamCsv?(plan: ReadPlan, presence?: Presence): Promise<LinesResult>
  /**
   * Reads rows whose reader works with them meanwhile, however many there are and however long that takes. A JSON null has a tab before it,
   * an SQL NULL has none. Absent where a backend has no such read.
   */
  stream?(plan: ReadPlan, presence?: Presence): Promise<RowsResult>
  count(plan: CountPlan, on?: OpenTransaction, presence?: Presence): Promise<number>
  /** Writes are committed when they return, with all rows in memory. */
  insert(plan: InsertPlan, on?: OpenTransaction, presence?: Presence): Promise<WriteResult>
  update(plan: UpdatePlan, on?: OpenTransaction, presence?: Presence): Promise<WriteResult>
  delete(plan: DeletePlan, on?: OpenTransaction, presence?: Presence): Promise<WriteResult>

  /** Whether an insert or update can have a `check`. */
  readonly checksWrites?: boolean
  /** No row outside of a public route can make a condition of a body fail: it keeps `isGuarded`, or its conditions never fail on a row. */
  readonly keepsGuards?: boolean

  /** Row-level security. */
  readonly policies?: Policies | undefined

  /** The structure has changed: the next plan reads the catalogue again. */
  invalidate(): void
  /**
   * The structure was changed by another client or process, of this database or, for an empty name, of any. Absent where changes are not
   * announced.
   */
  structureChanged?(database: string): void

  /** Throws if the database is reached through a pooler only, or its `direct_url` is wrong. Absent where no backup is made of it. */
  requireSession?(): Promise<void>

  stats(): DriverStats
  close(): Promise<void>
}

/** The part of a driver that a caller of the gateway carries: all but the way to rows, which is `prepare` (gateway/prepare.ts). */
export type Backend = Abilities & {
  readonly name: DriverName
  /** A read does not return rows that are written while it runs. */
  readonly readsSnapshot?: boolean
  catalogue(): Promise<Catalogue>
  /**
   * Identifies the database, so that two clients of one database return the same; cached. Undefined where the server does not report it.
   */
  identity(): Promise<string | undefined>
  /** Checks the server with a statement and returns its version (`15.18`); throws a Failure when it does not answer. */
  probe(): Promise<string>
}

/** Operations that only some backends support. A driver omits the others; `requireAbility` checks (abilities.ts). */
export type Abilities = { readonly [A in Ability]?: AbilityOf[A] | undefined }
export type Ability = keyof AbilityOf
export type AbilityOf = {
  /** Runs the caller's own SQL on a connection whose session is reset before the next caller has it. */
  sql: (request: SqlRequest) => Promise<SqlResult>
  fixedSql: FixedSql
  /** Calls a function; its rows are read like those of a table. */
  call: (request: CallRequest) => Promise<RowsResult>
  transaction: RunTransaction
  /** Answers stored under an idempotency key, in the client's own database (gateway.md 4). */
  idempotency: IdempotencyStore
  management: Management
  /** Live rows. */
  changes: ChangeFeed
  /** By schema, table and name; with `only` at least the one of that name. Plans do not need indexes, so they are not in the catalogue. */
  indexes: (only?: IndexName) => Promise<readonly Index[]>
  /** Texts of constraints that the catalogue has without theirs. */
  constraintDefinitions: () => Promise<readonly ConstraintDefinition[]>
  declaredTypes: () => Promise<DeclaredTypes>
}

/** SQL of an operator, whose callers only give its values (gateway.md 13). */
type FixedSql = {
  /** Throws a failure unless the text is one statement that reads or writes rows. */
  check(text: string): Promise<void>
  /** Runs it as the caller: with the role and the claims of its persona. */
  run(request: SqlRequest): Promise<SqlResult>
}

/**
 * Runs the work in a transaction on one connection: commits when it returns, rolls back when it throws, also after a failure of one
 * statement. The work may run twice, the first time without effect. It must read its results to their end.
 */
type RunTransaction = <T>(
  work: (on: OpenTransaction) => Promise<T>,
  options: TransactionOptions,
) => Promise<T>

type Policies = {
  /**
   * This driver for one caller: data operations and functions run as that role and with those claims, without it as the client's own
   * role.
   */
  as(persona: Persona): Driver
}

/** The caller that waits for an answer. Statements are cancelled when they have left; without a presence only the timeout ends them. */
export type Presence = {
  hasLeft(): boolean
  /** Aborts when they leave. Created on demand, because reads by key do not need it. */
  signal(): AbortSignal
}

/** Role and claims of an operation (gateway.md 19). */
export type Persona = {
  /** A role of the database; `none` is the client's own. */
  readonly role: string
  /** JSON that policies read with `current_setting('request.claims')`. */
  readonly claims: string
  /** The same for `request.jwt.claims`, on clients that fill it. */
  readonly jwtClaims?: string
  /** The database refuses every write, also of functions that a view or a policy calls. */
  readonly readOnly?: boolean
}

/** Roles of a client's callers in its database, and who may be a caller. */
export type RowLevelSecurity = {
  readonly anonymousRole: string
  readonly signedInRole: string
  /** Issuers whose JWTs decide who the caller is. */
  readonly issuers?: readonly TrustedIssuer[]
  /** Sessions of this service are refused; JWTs of the issuers are accepted. */
  readonly refusesSessions?: boolean
  /** Policies find the claims in `request.jwt.claims` too. */
  readonly setsJwtClaims?: boolean
  /** Claims whose values need not be UUIDs, since issuers choose them. */
  readonly textClaims?: readonly IdClaim[]
}

/** The settings of an issuer. */
export type TrustedIssuer = Config['clients'][string]['row_level_security']['issuers'][number]

/** The claims that name a user and an organization. */
export type IdClaim = 'user_id' | 'organization_id'

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
  /** Claims the key in a transaction. Waits for another transaction that has claimed it; false if that one committed. */
  claim(on: OpenTransaction, key: string, as: { body: string; at: Date; since: Date }): Promise<boolean>
  store(on: OpenTransaction, key: string, answer: string): Promise<void>
}

export type StoredAnswer = { readonly body: string; readonly answer: string }

export type RowsResult = {
  /**
   * JSON text of the row array in UTF-8. An array has all of it. Otherwise a stream with back-pressure, which occupies a connection: read
   * it to its end or leave the loop (`return()` releases the connection). A chunk ends with a whole row.
   */
  readonly json: readonly Buffer[] | AsyncIterable<Buffer>
  /** For an array known at once, for a stream after its end; earlier it throws. */
  facts(): RowsFacts
}

export type ResultColumn = {
  readonly name: string
  /** The values are JSON; so texts have quotes. */
  readonly isJson: boolean
  /** The backend's name of the type, where it tells one with the rows. */
  readonly type?: string | undefined
}

export type LinesResult = {
  /** Lines of CSV without that of the names (csv-lines.ts). An array or a stream as the JSON of other results. */
  readonly lines: RowsResult['json']
  readonly facts: RowsResult['facts']
}

export type RowsFacts = {
  readonly rows: number
  /** The default limit has cut rows. */
  readonly hasMore: boolean
  /** Rows that match without limit and offset; only when the plan asked for `count`. */
  readonly total: number | undefined
}

export type WriteResult = {
  readonly json: readonly Buffer[]
  readonly affected: number
  readonly rows: number
  /** More rows were changed than a result may have; it has the first ones. */
  readonly truncated: boolean
  readonly total: number | undefined
}

export type SqlRequest = {
  readonly text: string
  /** With values, even none, the text must be exactly one statement. */
  readonly values: readonly Json[] | undefined
  /** One reading statement, in a read-only transaction. */
  readonly readOnly: boolean
  /** Also rejects functions that may do more than read. */
  readonly rejectsSideEffects?: boolean
  /** The schema of unqualified names. */
  readonly schema: string | undefined
  /** Refused when the client's database has another name. */
  readonly database: string | undefined
  /** More rows are `result_too_large`, and the statements are rolled back. */
  readonly maxRows: number
  readonly presence: Presence
}

export type CallRequest = {
  /** The function, as the table that is read. */
  readonly read: ReadRequest
  /** By name. */
  readonly arguments: Row
  /** They come from a URL: the database converts their text, also to JSON. */
  readonly areTexts: boolean
  /** The function may not write. */
  readonly readOnly: boolean
  readonly presence: Presence
}

export type SqlResult = {
  /** The rows of the last statement. */
  readonly json: readonly Buffer[]
  readonly columns: readonly ResultColumn[]
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

/** Everything that a driver gets besides the settings of its client. */
export type DriverContext = {
  readonly config: Config
  readonly log: Log
  /** Clients on this server may not log in as one of its control roles. */
  readonly controlServer?: () => Promise<ControlServer | undefined>
  /** Memory of the process for reading ahead of slow readers. */
  readonly readAhead?: () => MemoryBudget
}

export type DriverSettings = {
  readonly name: string
  readonly driver: DriverName
  readonly url: string
  /** The same database past a pooler. */
  readonly direct_url?: string | undefined
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

export type OpenDriver = (context: DriverContext, settings: DriverSettings) => Driver
