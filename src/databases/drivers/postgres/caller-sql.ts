import { isUtf8 } from 'node:buffer'
import type { Persona, SqlRequest, SqlResult } from '#databases/drivers/driver.ts'
import type { RunUntrusted } from '#databases/drivers/postgres/pool/untrusted-connections.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { finishPooled, refuseTransactionControl } from '#databases/drivers/postgres/protocol/pooler.ts'
import { type Script, ScriptRun } from '#databases/drivers/postgres/protocol/script.ts'
import { requireReading } from '#databases/drivers/postgres/read-guard.ts'
import { become } from '#databases/drivers/postgres/roles/persona.ts'
import {
  firstWord,
  type PlacedStatement,
  splitStatements,
} from '#databases/drivers/postgres/sql/statement-text.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { type DatabaseFailureCode, fail } from '#databases/failures.ts'
import { wholeText } from '#databases/request/decimal.ts'
import type { Json } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'

type SqlRunner = {
  readonly run: RunUntrusted
  readonly maxBytes: number
  /** Its role and claims apply to the one transaction of the text. Only for fixed SQL, because a caller's own could change the role. */
  readonly persona?: Persona | undefined
}

/** Runs the caller's own SQL, or fixed SQL, on an untrusted connection. */
export function runSql(
  { run: runUntrusted, maxBytes, persona }: SqlRunner,
  request: SqlRequest,
): Promise<SqlResult> {
  const { readOnly, text } = request
  const placed = scriptOf(request)
  const statements = placed.map(({ text }) => text)
  return runUntrusted(request.presence, async (client) => {
    requireDatabase(client, request.database)
    const script: Script = {
      statements,
      maxRows: request.maxRows,
      maxBytes,
      values: (types) => parameters(request.values, types),
    }
    let run: ScriptRun | undefined
    try {
      if (client.pooled !== undefined) refuseTransactionControl(statements)
      if (request.schema !== undefined) await searchIn(client, request.schema)
      if (readOnly) await beginReading(client)
      else if (persona !== undefined && client.pooled === undefined) await client.query('begin')
      if (persona !== undefined) await become(client, persona)
      if (request.rejectsSideEffects) await requireReading(client, text)
      run = new ScriptRun(client, script)
      client.query(run)
      await run.ended
      if (client.pooled !== undefined) await finishPooled(client, readOnly ? 'rollback' : 'commit')
      else if (readOnly) await client.query('rollback')
      else if (persona !== undefined) await client.query('commit')
      else refuseOpen(client)
      return answerOf(run)
    } catch (error) {
      throw sqlFailure(error, text, run && placed[run.completed])
    }
  })
}

/**
 * With parameters, or when it may only read, the text is one statement: the server refuses a second one in the extended protocol. The first
 * word determines its kind, so a reader is never `begin`, `commit`, `set`, `reset`, `copy`, `do` or `call`.
 */
function scriptOf({ text, values, readOnly }: SqlRequest): readonly PlacedStatement[] {
  if (text.includes('\0')) throw fail('invalid_sql', { hint: 'The text contains NUL.' })
  const first = firstWord(text)
  if (first === '') throw fail('invalid_sql', { hint: 'The text contains no statement.' })
  if (readOnly && !READERS.has(first))
    throw fail('read_only', {
      message: 'Only statements that read are possible here',
      hint: `One statement that begins with one of: ${[...READERS].join(', ')}.`,
    })
  return readOnly || values !== undefined ? [{ text, from: 0 }] : splitStatements(text)
}

const READERS = new Set(['select', 'with', 'values', 'table', 'explain', 'show'])

function requireDatabase(client: RowClient, asked: string | undefined): void {
  if (asked === undefined || asked === client.database) return
  throw fail('invalid_sql', {
    message: 'db_name is another database than that of the client',
    hint: 'Name another client in X-Service-Client.',
    details: { field: 'db_name' },
  })
}

async function searchIn(client: RowClient, schema: string): Promise<void> {
  const isLocal = client.pooled !== undefined
  await client.query(`select pg_catalog.set_config('search_path', $1, ${isLocal})`, [quoteName(schema)])
}

/** Behind a pooler the transaction is open already. */
async function beginReading(client: RowClient): Promise<void> {
  await client.query(
    client.pooled === undefined ? 'begin transaction read only' : 'set transaction read only',
  )
}

/** Otherwise the caller would get a success that is rolled back with the connection. */
function refuseOpen(client: RowClient): void {
  if (client.getTransactionStatus() === 'I') return
  throw fail('invalid_sql', {
    message: 'The text leaves a transaction open',
    hint: 'It was rolled back. End it with COMMIT in the same text.',
  })
}

function answerOf({ writer, columns, affected, completed }: ScriptRun): SqlResult {
  const json = writer?.take() ?? [Buffer.from('[]')]
  // After `set client_encoding`, or with a database in SQL_ASCII, the answer would not be JSON.
  if (!json.every((chunk) => isUtf8(chunk)))
    throw fail('not_supported', { message: 'The result is not in UTF-8', hint: 'Use encode(…) for bytes.' })
  return { json, columns, rows: writer?.rows ?? 0, affected, statements: completed }
}

/** The text of each parameter by the type that the server inferred. The server converts the text and refuses values that do not fit. */
function parameters(values: readonly Json[] = [], types: readonly number[]): (string | null)[] {
  if (values.length !== types.length)
    throw fail('invalid_sql', {
      message: `The statement has ${types.length} parameters, params has ${values.length}`,
      details: { field: 'params' },
    })
  return values.map((value, index) => parameterText(value, types[index] ?? 0))
}

function parameterText(value: Json, type: number): string | null {
  if (value === null) return null
  if (typeof value === 'string') return value
  if (Array.isArray(value) && !JSON_TYPES.has(type)) return arrayText(value)
  if (JSON.isRawJSON(value) && WHOLE_TYPES.has(type)) return wholeText(value.rawJSON)
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** int8, int2, int4. */
const WHOLE_TYPES = new Set([20, 21, 23])
/** json, jsonb. */
const JSON_TYPES = new Set([114, 3802])

const arrayText = (items: readonly Json[]): string =>
  `{${items
    .map((item) => {
      if (item === null) return 'NULL'
      if (Array.isArray(item)) return arrayText(item)
      const text = typeof item === 'object' ? JSON.stringify(item) : String(item)
      return `"${text.replace(/["\\]/g, '\\$&')}"`
    })
    .join(',')}}`

/**
 * A failure of the caller's own SQL. The database's message and the position help the caller and reveal nothing that they did not write or
 * may not read. Failures that are otherwise the backend's are caused by the text, unless the class is one of the server's.
 */
function sqlFailure(error: unknown, text: string, failed: PlacedStatement | undefined): unknown {
  const failure = failureOf(error)
  if (!(failure instanceof Failure) || !(failure.cause instanceof Error)) return failure
  const cause = failure.cause as Error & {
    readonly code?: string
    readonly position?: string
    readonly severity?: string
  } // pg's
  if (cause.severity === undefined) return failure
  const { code = '', message } = cause
  const known = failure.code as DatabaseFailureCode // failureOf uses that table
  const mine = isMine(known, code) ? 'invalid_sql' : known
  return fail(mine, {
    ...(mine === 'invalid_value' && { message: 'A value does not fit at its position' }),
    hint: message,
    cause: error,
    details: { sqlstate: code, ...placeOf(cause.position, text, failed) },
  })
}

/** The text may also name prepared statements, roles and databases; otherwise only a new connection can fail for these. */
const isMine = (known: DatabaseFailureCode, code: string): boolean =>
  /^(26|28|3D)/.test(code) || (GENERIC.has(known) && !/^(57|58|F0|XX)/.test(code))

const GENERIC: ReadonlySet<DatabaseFailureCode> = new Set([
  'database_error',
  'rejected_by_database',
  'invalid_definition',
  'invalid_operator',
])

/** Converts the server's position in the statement to one of the caller's text, in characters from 1, and to its line. */
function placeOf(position: string | undefined, text: string, failed: PlacedStatement | undefined) {
  if (position === undefined || failed === undefined) return {}
  const before = [...text.slice(0, failed.from), ...[...failed.text].slice(0, Number(position) - 1)]
  return { position: before.length + 1, line: before.join('').split('\n').length }
}
