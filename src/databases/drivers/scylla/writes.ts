import type { WriteResult } from '#databases/drivers/driver.ts'
import { type ScyllaTable, tableOf } from '#databases/drivers/scylla/catalogue.ts'
import {
  type ColumnValues,
  cannot,
  comparisonsOf,
  deleteText,
  insertText,
  updateText,
} from '#databases/drivers/scylla/cql.ts'
import {
  findByKeys,
  type RowShape,
  type RowWithKey,
  type StoredRow,
  withKeys,
} from '#databases/drivers/scylla/keys.ts'
import { requireExact } from '#databases/drivers/scylla/reads.ts'
import type { Session, Statement } from '#databases/drivers/scylla/session.ts'
import { fail } from '#databases/failures.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type {
  Assignment,
  ChangePlan,
  DeletePlan,
  InsertPlan,
  UpdatePlan,
  WritePlan,
} from '#databases/plan/plan.ts'
import type { Json, Row } from '#databases/request/request.ts'

/**
 * CQL's INSERT and UPDATE overwrite existing rows and create missing ones without reporting it. Here a write is conditional (Paxos): it is
 * applied as a whole if the rows are unchanged since they were read, otherwise it is tried again. Conditions are limited to one partition,
 * so writes to several are refused, except a plain upsert, which needs no condition.
 */
const ATTEMPTS = 5

export async function insertRows(session: Session, plan: InsertPlan): Promise<WriteResult> {
  const table = writableTable(plan)
  const rows = await withKeys(
    session,
    table,
    plan.rows.map((row) => givenRow(table, row)),
  )
  const columns = plan.columns.map(({ name }) => name)
  if (plan.conflict) return upsert(session, plan, plan.conflict, rows, columns)
  if (isRepeated(rows)) throw duplicate(table)
  requireOnePartition(rows)
  if (!(await session.write(rows.map(({ row }) => insertText(table, columns, row, true)))))
    throw duplicate(table)
  return written(session, plan, rows)
}

async function upsert(
  session: Session,
  plan: InsertPlan,
  conflict: NonNullable<InsertPlan['conflict']>,
  rows: readonly RowWithKey[],
  columns: readonly string[],
): Promise<WriteResult> {
  const table = tableOf(plan)
  requireKey(table, conflict.columns)
  const set = conflict.set && changes(table, conflict.set, rows)
  if (set && isRepeated(rows)) throw fail('invalid_write', { hint: 'A row is given twice in insert_body.' })
  if (set && rows.every(({ row }) => saysTheSame(table, row, set))) {
    await session.write(rows.map(({ row }) => insertText(table, columns, row, false)))
    return written(session, plan, rows)
  }
  requireOnePartition(rows)
  const first = [...new Map(rows.toReversed().map((row) => [row.key, row])).values()].toReversed()
  const done = await asSeen(session, table, first, (found) =>
    first.flatMap((row) => {
      if (!found.has(row.key)) return [{ row, statement: insertText(table, columns, row.row, true) }]
      return set ? [{ row, statement: updateText(table, set, row.row) }] : []
    }),
  )
  return written(session, plan, done.rows)
}

export async function updateRows(session: Session, plan: UpdatePlan, limit: number): Promise<WriteResult> {
  const table = writableTable(plan)
  const set = changes(table, plan.set, [])
  const rows = await chosenRows(session, plan, limit)
  const done = await asSeen(session, table, rows, (found) =>
    rows
      .filter(({ key }) => found.has(key))
      .map((row) => ({ row, statement: updateText(table, set, row.row) })),
  )
  return written(session, plan, done.rows)
}

/** Returns the rows as they were read just before. */
export async function deleteRows(session: Session, plan: DeletePlan, limit: number): Promise<WriteResult> {
  const table = writableTable(plan)
  const rows = await chosenRows(session, plan, limit)
  const done = await asSeen(
    session,
    table,
    rows,
    (found) =>
      rows.filter(({ key }) => found.has(key)).map((row) => ({ row, statement: deleteText(table, row.row) })),
    shapeOf(plan),
  )
  return answerOf(plan, done.rows, done.found)
}

type Step = { readonly row: RowWithKey; readonly statement: Statement }
type StoredRows = ReadonlyMap<string, StoredRow>

/** Reads which rows exist, writes what follows from that, and tries again when they have changed meanwhile. */
async function asSeen(
  session: Session,
  table: ScyllaTable,
  rows: readonly RowWithKey[],
  stepsFor: (found: StoredRows) => readonly Step[],
  shape: RowShape = { output: [], stripNulls: false },
): Promise<{ readonly rows: readonly RowWithKey[]; readonly found: StoredRows }> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const found = await findByKeys(session, table, rows, { ...shape, isSerial: true })
    const steps = stepsFor(found)
    if (await session.write(steps.map(({ statement }) => statement)))
      return { rows: steps.map(({ row }) => row), found }
  }
  throw fail('write_conflict')
}

/** The result of a write, read after it. */
async function written(session: Session, plan: WritePlan, rows: readonly RowWithKey[]): Promise<WriteResult> {
  if (plan.request.head) return answerOf(plan, rows, new Map())
  const found = await findByKeys(session, tableOf(plan), rows, { ...shapeOf(plan), isSerial: false })
  return answerOf(plan, rows, found)
}

const shapeOf = ({ output, request: { stripNulls } }: WritePlan): RowShape => ({ output, stripNulls })

function answerOf(plan: WritePlan, rows: readonly RowWithKey[], found: StoredRows): WriteResult {
  const texts = plan.request.head ? [] : rows.flatMap(({ key }) => found.get(key)?.text ?? [])
  return {
    json: [Buffer.from(`[${texts.join()}]`)],
    rows: texts.length,
    affected: rows.length,
    truncated: false,
    total: plan.kind !== 'insert' && plan.request.count ? rows.length : undefined,
  }
}

function writableTable(plan: WritePlan): ScyllaTable {
  const table = tableOf(plan)
  if (table.hasCounters) throw cannot('writes to tables of counters')
  if (table.kind !== 'table') throw cannot('writes to views')
  return table
}

function givenRow(table: ScyllaTable, row: Row): ColumnValues {
  const given = new Map(Object.entries(row))
  const missing = table.primaryKey.find((name) => (given.get(name) ?? null) === null)
  if (missing === undefined) return given
  throw fail('not_null_violation', {
    message: `Column ${missing} must have a value`,
    hint: 'It is part of the primary key.',
    details: { ...factsOf(table), column: missing },
  })
}

const factsOf = ({ schema, name }: ScyllaTable) => ({ schema_name: schema, table_name: name })

const isRepeated = (rows: readonly RowWithKey[]): boolean =>
  new Set(rows.map(({ key }) => key)).size < rows.length

const duplicate = (table: ScyllaTable) =>
  fail('unique_violation', {
    hint: 'Nothing was written.',
    details: { ...factsOf(table), constraint: 'primary key', columns: table.primaryKey },
  })

function requireOnePartition(rows: readonly RowWithKey[]): void {
  if (new Set(rows.map(({ partition }) => partition)).size <= 1) return
  throw cannot(
    'writes to several partitions at once, except with on_conflict and an update_body equal to each row',
  )
}

function requireKey(table: ScyllaTable, columns: readonly Column[]): void {
  const names = new Set(columns.map(({ name }) => name))
  if (names.size === table.primaryKey.length && table.primaryKey.every((name) => names.has(name))) return
  throw fail('invalid_conflict_target', {
    message: 'on_conflict does not name the primary key',
    hint: `The primary key is ${table.primaryKey.join(', ')}.`,
    details: factsOf(table),
  })
}

/** The new values. Key columns may be given if they equal the row's own. */
function changes(table: ScyllaTable, set: readonly Assignment[], rows: readonly RowWithKey[]): ColumnValues {
  const isKey = ({ column }: Assignment) => table.primaryKey.includes(column.name)
  for (const { column, value } of set.filter(isKey))
    if (rows.length === 0 || !rows.every(({ row }) => isSame(row.get(column.name), value)))
      throw cannot(`changes of column ${column.name}, which is part of the primary key`)
  const others = set.filter((assignment) => !isKey(assignment))
  if (others.length === 0) throw fail('empty_write', { hint: 'There is no column besides the primary key.' })
  return new Map(others.map(({ column, value }) => [column.name, value]))
}

/** Whether the new values equal the row, so that it does not matter whether the row exists. */
function saysTheSame(table: ScyllaTable, row: ColumnValues, set: ColumnValues): boolean {
  const others = [...row].filter(([name]) => !table.primaryKey.includes(name))
  return others.length === set.size && others.every(([name, value]) => isSame(value, set.get(name)))
}

const isSame = (one: Json | undefined, other: Json | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** The rows that the conditions name by whole keys. */
async function chosenRows(session: Session, plan: ChangePlan, limit: number): Promise<RowWithKey[]> {
  const table = tableOf(plan)
  const { limit: given, offset, sort, count, single } = plan.request
  if (given !== undefined || offset > 0 || sort.length > 0) throw cannot('limit, offset and order of a write')
  if (count) requireExact(count)
  const chosen = await withKeys(session, table, combinations(table, choices(table, plan), limit))
  const rows = [...new Map(chosen.map((row) => [row.key, row])).values()]
  if (single && rows.length > 1) throw cannot('single for a write that names several rows')
  requireOnePartition(rows)
  return rows
}

/** Values of each column of the key. */
function choices(table: ScyllaTable, plan: ChangePlan): ReadonlyMap<string, readonly Json[]> {
  const values = new Map<string, readonly Json[]>()
  for (const { column, operator, value, columnCast, valueCast } of comparisonsOf(plan.where)) {
    if (columnCast !== undefined || valueCast !== undefined) throw cannot('casts')
    if (!table.primaryKey.includes(column.name) || values.has(column.name))
      throw cannot(`writes with this condition on column ${column.name}`)
    if (operator === 'eq') values.set(column.name, [value])
    else if (operator === 'in' && Array.isArray(value)) values.set(column.name, value)
    else throw cannot(`writes with the operator ${operator}`)
  }
  const missing = table.primaryKey.find((name) => !values.has(name))
  if (missing !== undefined)
    throw cannot(`writes without a condition on column ${missing} of the primary key`)
  if ([...values.values()].flat().includes(null)) throw cannot('conditions with null')
  return values
}

function combinations(
  table: ScyllaTable,
  values: ReadonlyMap<string, readonly Json[]>,
  limit: number,
): ColumnValues[] {
  const count = [...values.values()].reduce((product, list) => product * list.length, 1)
  if (count > limit) throw fail('too_complex', { hint: `A write may name ${limit} rows.` })
  return table.primaryKey.reduce<ColumnValues[]>(
    (rows, name) =>
      rows.flatMap((row) => (values.get(name) ?? []).map((value) => new Map([...row, [name, value]]))),
    [new Map()],
  )
}
