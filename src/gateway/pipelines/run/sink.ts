import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import type { Body } from '#databases/request/fields.ts'
import type { Row } from '#databases/request/request.ts'
import { readTable } from '#databases/request/table-name.ts'
import type { GatewayCaller } from '#gateway/caller/caller.ts'
import { requireOwnSession } from '#gateway/caller/caller-rights.ts'
import { fail } from '#gateway/errors.ts'
import { type Prepared, prepare } from '#gateway/prepare.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type BulkInsert, createBulkInsert, isInDoubt } from '../../bulk/bulk-insert.ts'
import { bodyOf } from '../definition.ts'
import type { Lifetime } from './lifetime.ts'
import { atEnd, type RunRequest, requireSameCaller, requireStillOn } from './run-request.ts'

/** The table that a run inserts into, and the outcome of its inserts so far. */
export type RunSink = BulkInsert & {
  /** As `schema.table`; null for a simulation without a sink. */
  readonly table: string | null
  /** Columns that can hold a JSON null. */
  readonly jsonColumns: ReadonlySet<string>
  /** Rows of a statement whose outcome is unknown. */
  inDoubt(): number
  requireStillOn(): Promise<void>
}

/** `columns` are those of the candidates. */
export const openSink = (
  kernel: Kernel,
  request: RunRequest,
  columns: readonly string[],
  lifetime: Lifetime,
): Promise<RunSink> =>
  atEnd(request, 'sink', () =>
    request.dryRun ? drySink(request) : writableSink(kernel, request, columns, lifetime),
  )

/** A dry run needs no right to the sink, so it only reads the name. */
async function drySink({ sink, parts }: RunRequest): Promise<RunSink> {
  const { table_name, schema_name, client } = parts.sink
  // A simulation without a sink may read the logging client.
  if (table_name !== undefined || client !== undefined) requireWritableBy(await sink.caller())
  const named = table_name === undefined ? undefined : readTable({ table_name, schema_name })
  return {
    table: named === undefined ? null : `${named.schema}.${named.table}`,
    jsonColumns: new Set(),
    insert: async () => true,
    inserted: () => 0,
    refused: () => ({ count: 0, errors: [] }),
    inDoubt: () => 0,
    requireStillOn: async () => {},
  }
}

function requireWritableBy(caller: GatewayCaller): void {
  requireOwnSession(caller)
  if (caller.client.isLogging) throw fail('read_only', { hint: 'The logging client is never a sink.' })
}

async function writableSink(
  kernel: Kernel,
  request: RunRequest,
  columns: readonly string[],
  lifetime: Lifetime,
): Promise<RunSink> {
  const { config } = kernel
  requireWritableBy(await request.sink.caller())
  const row = Object.fromEntries(columns.map((name) => [name, null]))
  const { caller, plan } = await preparedInsert(kernel, request, [row])
  const planned = new Set(plan.columns.map(({ name }) => name))
  let inDoubt = 0

  async function write(rows: readonly Row[]): Promise<number> {
    const insert = await preparedInsert(kernel, request, rows)
    // Policies and defaults of the sink depend on the claims, and all rows of a run are written for one caller.
    await requireSameCaller(caller, insert.caller)
    requirePlanned(planned, insert)
    try {
      return (await insert.run()).affected
    } catch (error) {
      if (isInDoubt(error)) inDoubt = rows.length
      throw error
    }
  }

  const bulk = createBulkInsert({
    write: (rows) => atEnd(request, 'sink', () => write(rows)),
    check: lifetime.check,
    maxErrors: config.gateway.pipelines.max_errors,
    maxRows: config.limits.insert_rows,
  })
  return {
    ...bulk,
    insert: (rows) => lifetime.measure('sink', () => bulk.insert(rows)),
    table: `${plan.table.schema}.${plan.table.name}`,
    jsonColumns: new Set(plan.columns.flatMap(({ name, base }) => (isJson(base) ? [name] : []))),
    inDoubt: () => inDoubt,
    requireStillOn: () => atEnd(request, 'sink', () => requireStillOn(caller, request.sink)),
  }
}

const isJson = (base: string): boolean => base === 'json' || base === 'jsonb'

/** The insert ends although the caller has left, so that the number of stored rows is known. */
async function preparedInsert(
  kernel: Kernel,
  { sink, parts }: RunRequest,
  rows: readonly Row[],
): Promise<Prepared<'insert'>> {
  const { client: _, ...target } = parts.sink
  const body: Body = { ...bodyOf(target), insert_body: rows, head: true }
  return prepare(kernel, { ...(await sink.caller()), presence: ALWAYS_PRESENT }, body, 'insert')
}

/** A backend may return members that were not asked for. They would write columns that the pipeline leaves out. */
function requirePlanned(planned: ReadonlySet<string>, { plan }: Prepared<'insert'>): void {
  const other = plan.columns.find(({ name }) => !planned.has(name))
  if (other === undefined) return
  throw fail('database_error', {
    message: `The database of the source returned ${other.name}, which was not asked for`,
  })
}
