import { codeOf } from '#databases/drivers/postgres/protocol/query-errors.ts'
import { findRefusedColumn, type WrittenValues } from '#databases/drivers/postgres/protocol/refused-column.ts'
import { isPretended, stateOf } from '#databases/drivers/postgres/protocol/sqlstates.ts'
import { type DatabaseFailureCode, fail } from '#databases/failures.ts'
import type { Column, Table } from '#databases/plan/catalogue.ts'
import { Failure, type FailureFacts } from '#kernel/errors.ts'

/** Facts about the statement, so that its failure can name a column. */
export type About = {
  readonly table: Table | undefined
  /** The column of each parameter, by position. */
  readonly parameters: readonly (Column | undefined)[]
  /** Where the terms of a column begin in the text, ascending. */
  readonly termPositions: readonly { readonly at: number; readonly column: Column }[]
  /** The role of the caller, for a refusal that depends on it. */
  readonly actsAs?: string | undefined
  /** The caller's session has no active organization, which the caller knows. */
  readonly lacksOrganization?: boolean | undefined
} & WrittenValues

const NO_STATEMENT: About = {
  table: undefined,
  parameters: [],
  termPositions: [],
  written: [],
  given: () => [],
}

/** Converts an error of the server, the network or the pool to a Failure without SQL, host or credentials. */
export function failureOf(error: unknown, about: About = NO_STATEMENT): unknown {
  const code = codeOf(error)
  // Only an ErrorResponse has a severity; EPIPE is no SQLSTATE.
  const state = error instanceof Error && 'severity' in error ? stateOf(code) : undefined
  if (state === undefined) return networkFailure(error, code)
  return serverFailure(state, error as ServerError, about) // it has an SQLSTATE, so it is pg's form of an ErrorResponse
}

/** The failure of connecting: nothing was sent, so the result of no statement is in doubt. */
export function connectFailure(error: unknown): unknown {
  const failure = failureOf(error)
  const isLost = failure instanceof Failure && failure.code === 'connection_lost'
  return isLost ? fail('client_unavailable', { cause: error }) : failure
}

type ServerError = Error & {
  readonly code: string
  readonly where?: string
  readonly position?: string
  readonly detail?: string
  readonly schema?: string
  readonly table?: string
  readonly column?: string
  readonly constraint?: string
  readonly dataType?: string
  readonly routine?: string
}

function serverFailure(state: DatabaseFailureCode, error: ServerError, about: About): Failure {
  const code = isPretended(error, state) ? 'rejected_by_database' : about.table ? ofPlan(state, error) : state
  const column = error.column ?? columnOf(error, about)?.name
  const columns =
    about.table?.constraints.find(({ name }) => name === error.constraint)?.columns ??
    columnsInDetail(error.detail)
  const details = {
    ...(about.table && { schema_name: about.table.schema, table_name: about.table.name }),
    ...(column !== undefined && { column }),
    ...(error.constraint !== undefined && { constraint: error.constraint }),
    ...(columns.length > 0 && { columns }),
    // The code of one's own that a function or trigger has raised.
    ...(code === 'rejected_by_database' && { sqlstate: error.code }),
    ...otherTable(error, about),
  }
  const hint = QUOTED_CODES.has(code) ? quoted(code, error, about) : HINTS[code]
  const facts: FailureFacts = { details, cause: error, ...(hint !== undefined && { hint }) }
  return fail(code, column === undefined ? facts : { ...facts, ...messageFor(code, column) })
}

/** A plan has only known names and correct syntax. */
function ofPlan(state: DatabaseFailureCode, { code, where, position }: ServerError): DatabaseFailureCode {
  // In a function or trigger that the statement has run, which lacks the name or pretends to.
  if (MISSING.has(state) && where !== undefined && position === undefined) return 'rejected_by_database'
  // An operator or an array type of the column is missing.
  if (state === 'object_not_found') return 'invalid_operator'
  // A value with a syntax of its own is wrong: tsquery, hstore, ltree.
  return code === '42601' ? 'invalid_value' : state
}

const MISSING: ReadonlySet<DatabaseFailureCode> = new Set([
  'table_not_found',
  'unknown_column',
  'schema_not_found',
])

function quoted(code: DatabaseFailureCode, { message, routine }: ServerError, about: About): string {
  if (code !== 'permission_denied' || about.actsAs === undefined) return message
  // Reported by this function, a policy has refused a row.
  const isWithout = routine === 'ExecWithCheckOptions' && about.lacksOrganization === true
  return `${message}; ${about.actsAs}${isWithout ? ', and no organization is active in its session: claim organization_id is null' : ''}`
}

/**
 * The failure is about another table: a row of it refers to this one, or a cascade fails there. plan/redact-failure.ts hides it from
 * callers who may not read that table.
 */
function otherTable({ schema, table }: ServerError, { table: named }: About) {
  if (schema === undefined || table === undefined || (schema === named?.schema && table === named.name))
    return {}
  return { other_table: { schema_name: schema, table_name: table } }
}

/** Only the answer of a statement that commits by itself shows that it did. */
export const IN_DOUBT = 'A read can be repeated; whether a write was done is not known.'

const HINTS: Partial<Record<DatabaseFailureCode, string>> = {
  connection_lost: IN_DOUBT,
  statement_timeout: 'The statement was ended, and what it did is undone.',
}

/** Codes whose message of the server helps the caller. It can contain only the table, its rules and the caller's values. */
const QUOTED_CODES: ReadonlySet<DatabaseFailureCode> = new Set([
  'invalid_value',
  'invalid_write',
  'not_null_violation',
  'check_violation',
  'unique_violation',
  'foreign_key_violation',
  'exclusion_violation',
  'rejected_by_database',
  'invalid_operator',
  'invalid_conflict_target',
  'invalid_definition',
  'column_not_writable',
  'permission_denied',
  'object_exists',
  'object_in_use',
  'object_not_found',
  'not_supported',
  'too_complex',
])

function messageFor(code: DatabaseFailureCode, column: string): { message?: string } {
  if (code === 'invalid_value') return { message: `A value does not fit column ${column}` }
  if (code === 'not_null_violation') return { message: `Column ${column} must have a value` }
  if (code === 'check_violation')
    return { message: `The value of column ${column} breaks a rule of the table` }
  if (code === 'invalid_operator') return { message: `The operator does not fit column ${column}` }
  return {}
}

/** Column names of `Key (a, b)=(1, 2) already exists.`, never the values. */
const columnsInDetail = (detail: string | undefined): string[] => {
  const end = detail?.indexOf(')=') ?? -1
  // The values after the names may be a megabyte.
  const names = end < 0 ? undefined : detail?.slice(detail.lastIndexOf('(', end) + 1, end)
  return names === undefined || /[)=]/.test(names)
    ? []
    : names.split(', ').map((name) => name.replaceAll('"', ''))
}

/** Finds the column by the parameter in the server's context, the position in the text, or the types. */
function columnOf(error: ServerError, about: About): Column | undefined {
  const parameter = /\$(\d+)/.exec(error.where ?? '')?.[1]
  if (parameter !== undefined) return about.parameters[Number(parameter) - 1]
  if (error.position !== undefined) return spotAt(Number(error.position) - 1, about)
  if (error.constraint !== undefined) return checkedBy(error, about)
  if (error.code.startsWith('22')) return findRefusedColumn(error, about) ?? composedBy(error, about)
  return undefined
}

/** For a record or array built from JSON, the server does not name the parameter. */
function composedBy({ code }: ServerError, { parameters }: About): Column | undefined {
  if (!UNREADABLE.has(code)) return undefined
  return only([
    ...new Set(parameters.filter((column) => column?.category === 'C' || column?.category === 'A')),
  ])
}

/** invalid_text_representation, invalid_datetime_format, numeric_value_out_of_range. */
const UNREADABLE: ReadonlySet<string> = new Set(['22P02', '22007', '22003'])

const spotAt = (position: number, about: About): Column | undefined =>
  about.termPositions.findLast((term) => term.at <= position)?.column

/** A check over one column concerns that column, a check of a domain the columns of that type. */
function checkedBy(error: ServerError, about: About): Column | undefined {
  const columns = about.table?.constraints.find(({ name }) => name === error.constraint)?.columns ?? []
  if (columns.length === 1) return about.table?.columns.get(columns[0] ?? '')
  if (error.dataType === undefined) return undefined
  return only(
    about.written.filter((column) => column.cast.replaceAll('"', '').endsWith(error.dataType ?? '')),
  )
}

const only = <T>(items: readonly T[]): T | undefined => (items.length === 1 ? items[0] : undefined)

/** Socket errors have codes like ECONNREFUSED; pg's own errors have none. Any other error is a bug and stays unchanged. */
function networkFailure(error: unknown, code: string): unknown {
  if (!(error instanceof Error) || error instanceof Failure) return error
  if (UNREACHABLE.has(code)) return fail('client_unavailable', { cause: error })
  if (/^E[A-Z]+$|^ERR_(SSL|TLS)/.test(code) || LOST.test(error.message))
    return fail('connection_lost', { hint: IN_DOUBT, cause: error })
  return error
}

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EACCES',
])
const LOST = /connection (terminated|error)|not queryable|timeout expired|SSL connections?/i
