import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'
import type { Table } from '#databases/plan/catalogue.ts'

/**
 * A name for a new object: letters, digits, `_` and `$`, so that rights (`schema.table.read`) and column lists need no quotes. Existing
 * tables may have any name.
 */
export function newName(name: string, field: string): string {
  if (!isPlain(name)) throw badName(field, name)
  return quoteName(name)
}

const isPlain = (name: string): boolean =>
  /^[\p{L}_][\p{L}\p{N}_$]*$/u.test(name) && Buffer.byteLength(name) <= 63

/** The quoted name of a table of the catalogue. Names of the service and of the system, and other kinds of relations, are refused. */
export function existingTable({ schema, name, kind }: Pick<Table, 'schema' | 'name' | 'kind'>): string {
  requireUnreserved(schema, name)
  if (kind !== 'table' && kind !== 'partitioned table')
    throw fail('invalid_definition', {
      message: `${schema}.${name} is a ${kind}, and only tables can be changed`,
      details: { schema_name: schema, table_name: name, kind },
    })
  return `${quoteName(schema)}.${quoteName(name)}`
}

/** The quoted name of a column of the table. 404 without it, and 400 if no column can have this name. */
export function existingColumn(columns: ReadonlyMap<string, unknown>, name: string): string {
  if (columns.has(name)) return quoteName(name)
  const canExist = isPlain(name) && !SYSTEM_COLUMNS.has(name)
  throw fail(canExist ? 'object_not_found' : 'unknown_column', {
    message: `There is no column ${name.slice(0, 63)}`,
    details: { column: name.slice(0, 63) },
  })
}

const SYSTEM_COLUMNS: ReadonlySet<string> = new Set(['ctid', 'tableoid', 'xmin', 'xmax', 'cmin', 'cmax'])

/** Refuses names of the service and of the system. Every operation of management calls this. */
export function requireUnreserved(schema: string, table: string): void {
  const isReserved =
    schema.startsWith('pg_') ||
    RESERVED_SCHEMAS.has(schema) ||
    (schema === 'public' && RESERVED_NAMES.some((name) => table.startsWith(name)))
  if (!isReserved) return
  throw fail('invalid_identifier', {
    message: `${schema}.${table} is a name of the service or of the database`.slice(0, 200),
    hint: 'Choose another name.',
    details: { schema_name: schema, table_name: table },
  })
}

/** Tables that the catalogue and lists of objects exclude, as an array of SQL. */
export const HIDDEN_TABLES = `array['service_idempotency', 'service_changes', 'service_changes_state', 'service_changes_mark']`

/** Answers stored under idempotency keys (drivers/postgres/idempotency-store.ts), and live rows (changes/). Names of indexes begin so too. */
const RESERVED_NAMES = ['service_idempotency', 'service_changes']
/** A database with these schemas is taken for a control database, and its client is refused. */
const RESERVED_SCHEMAS: ReadonlySet<string> = new Set(['information_schema', 'service', 'service_jobs'])

export const badName = (field: string, name: string) =>
  fail('invalid_identifier', {
    message: `${field} is not a valid name`,
    hint: 'A name begins with a letter or _, continues with letters, digits, _ and $, and has at most 63 bytes.',
    details: { field, value: name.slice(0, 100) },
  })
