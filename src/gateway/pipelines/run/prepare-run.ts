import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import type { Table } from '#databases/plan/catalogue.ts'
import { type Body, snakeCased } from '#databases/request/fields.ts'
import type { ColumnTerm, Row } from '#databases/request/request.ts'
import { readTable } from '#databases/request/table-name.ts'
import type { GatewayCaller } from '#gateway/caller/caller.ts'
import { requireOwnSession } from '#gateway/caller/caller-rights.ts'
import { fail } from '#gateway/errors.ts'
import { type Grouping, hiddenColumns, readGrouping, withHidden } from '#gateway/grouping/grouping.ts'
import { type Prepared, prepare, prepareAgain } from '#gateway/prepare.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bodyOf, type Transform } from '../definition.ts'
import { type Aliases, aliasOf, type Shape, shapeOf } from './candidates.ts'
import { atStep } from './failed-step.ts'
import type { RunRequest } from './run-result.ts'

/** Both ends of a run and its transform, with all names found and all rights checked. */
export type PreparedRun = {
  readonly source: Prepared<'stream'>
  readonly shape: Shape
  /** As `schema.table`; null for a simulation without a sink. */
  readonly sinkTable: string | null
  /** The caller on the client of the sink; undefined for a dry run. */
  readonly sinkCaller: GatewayCaller | undefined
  /** The columns of the sink that are written. */
  readonly sinkColumns: ReadonlySet<string>
  /** Columns of the sink that can hold a JSON null. */
  readonly jsonColumns: ReadonlySet<string>
}

export async function prepareRun(
  kernel: Kernel,
  request: RunRequest,
  deadline: number,
): Promise<PreparedRun> {
  const { parts } = request
  const { snakeCase, grouping } = readTransform(kernel, parts.transform)
  requireTables(request)
  const atSource = <T>(work: () => Promise<T>) => atStep('source', request.source, work)
  const read = await atSource(() => prepareSource(kernel, request, deadline))
  const hidden = grouping === undefined ? new Set<string>() : hiddenColumns(read.plan, grouping)
  const aliases = aliasesOf(parts.transform, snakeCase)
  const shape = shapeOf(read.plan, hidden, grouping, aliases)
  const source = await atSource(async () =>
    grouping === undefined
      ? renamedSource(read, aliases)
      : hidden.size === 0
        ? read
        : prepareAgain(read, withHidden(read.plan.request, hidden)),
  )
  const sink = await atStep('sink', request.sink, () => readSink(kernel, request, shape))
  requireSnapshot(source, sink.sinkTable, request, shape)
  return { source, shape, ...sink }
}

type Source = Prepared<'stream'>

type NamedTerm = Exclude<ColumnTerm, { kind: 'all' }>

/** The source returns its columns under the names of the sink: renaming each row takes a tenth of the processor time of a run. */
async function renamedSource(read: Source, aliases: Aliases): Promise<Source> {
  if (aliases.size === 0) return read
  const { request, table } = read.plan
  const named = request.columns.flatMap((term): readonly NamedTerm[] =>
    term.kind === 'all' ? [...table.columns.keys()].map((name) => ({ kind: 'column', name })) : [term],
  )
  const columns = named.flatMap((term) => {
    const alias = aliasOf(aliases, term.alias ?? term.name)
    return alias === null ? [] : [{ ...term, alias }]
  })
  return prepareAgain(read, { ...request, columns })
}

/** The read of the source. It ends when the caller has left, the time is over, or the service stops. */
export async function prepareSource(
  kernel: Kernel,
  { source, presence, parts, stopping }: RunRequest,
  deadline: number,
): Promise<Prepared<'stream'>> {
  const hasLeft = () => presence.hasLeft() || performance.now() > deadline || stopping?.aborted === true
  const own = await source.caller()
  requireOwnSession(own)
  const caller = { ...own, presence: { ...presence, hasLeft } }
  return prepare(kernel, caller, bodyOf(parts.source), 'stream')
}

/** The insert of these rows into the sink. It ends although the caller has left, so that the number of stored rows is known. */
export async function prepareSink(
  kernel: Kernel,
  { sink, parts }: RunRequest,
  rows: readonly Row[],
): Promise<Prepared<'insert'>> {
  const { client: _, ...target } = parts.sink
  const body: Body = { ...bodyOf(target), insert_body: rows, head: true }
  return prepare(kernel, { ...(await sink.caller()), presence: ALWAYS_PRESENT }, body, 'insert')
}

function readTransform(
  { config }: Kernel,
  transform: Transform,
): { readonly snakeCase: boolean; readonly grouping: Grouping | undefined } {
  const snakeCase = config.gateway.force_camel_case_to_snake_case
  return { snakeCase, grouping: readGrouping(bodyOf(transform), snakeCase) }
}

const aliasesOf = ({ column_aliases = {} }: Transform, snakeCase: boolean): Aliases =>
  new Map(Object.entries(column_aliases).map(([name, as]) => [snakeCase ? snakeCased(name) : name, as]))

function requireTables({ parts: { source, sink }, needsSink }: RunRequest): void {
  if (source.table_name === undefined) throw missingTable('source')
  if (sink.table_name === undefined && needsSink) throw missingTable('sink')
}

const missingTable = (part: 'source' | 'sink') =>
  fail('missing_table', {
    message: `${part}.table_name is missing`,
    details: { field: `${part}.table_name` },
  })

type Sink = Pick<PreparedRun, 'sinkTable' | 'sinkCaller' | 'sinkColumns' | 'jsonColumns'>

/** Plans an insert with the columns of the candidates. A dry run needs no right to the sink, so it only reads the name. */
async function readSink(kernel: Kernel, request: RunRequest, { columns }: Shape): Promise<Sink> {
  const { table_name, client } = request.parts.sink
  // A simulation without a sink may read the logging client.
  if (request.dryRun && table_name === undefined && client === undefined) return NO_SINK
  const caller: GatewayCaller = await request.sink.caller()
  requireOwnSession(caller)
  if (caller.client.isLogging) throw fail('read_only', { hint: 'The logging client is never a sink.' })
  if (request.dryRun) return { ...NO_SINK, sinkTable: namedTable(request.parts.sink) }
  const row = Object.fromEntries(columns.map((name) => [name, null]))
  const insert = await prepareSink(kernel, request, [row])
  const ofJson = insert.plan.columns.filter(({ base }) => base === 'json' || base === 'jsonb')
  return {
    sinkTable: tableOf(insert.plan),
    sinkCaller: insert.caller,
    sinkColumns: new Set(insert.plan.columns.map(({ name }) => name)),
    jsonColumns: new Set(ofJson.map(({ name }) => name)),
  }
}

function namedTable({ table_name, schema_name }: RunRequest['parts']['sink']): string | null {
  if (table_name === undefined) return null
  const { schema, table } = readTable({ table_name, schema_name })
  return `${schema}.${table}`
}

const NO_SINK: Sink = {
  sinkTable: null,
  sinkCaller: undefined,
  sinkColumns: new Set(),
  jsonColumns: new Set(),
}

/** A backend whose reads return rows that are written meanwhile would read the rows of its own sink without end. */
function requireSnapshot(
  { caller, plan }: Prepared<'stream'>,
  sinkTable: string | null,
  { dryRun, sink }: RunRequest,
  { grouping }: Shape,
): void {
  const isSame = caller.client.name === sink.client && tableOf(plan) === sinkTable
  if (!isSame || dryRun || grouping !== undefined || caller.backend.readsSnapshot === true) return
  throw fail('invalid_pipeline', {
    message: `With the driver ${caller.backend.name}, the sink cannot be the table of the source`,
    details: { field: 'sink.table_name' },
  })
}

export const tableOf = ({ table }: { readonly table: Table }): string => `${table.schema}.${table.name}`
