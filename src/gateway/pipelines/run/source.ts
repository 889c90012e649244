import type { RowsResult } from '#databases/drivers/driver.ts'
import type { ColumnTerm } from '#databases/request/request.ts'
import type { GatewayCaller } from '#gateway/caller/caller.ts'
import { requireOwnSession } from '#gateway/caller/caller-rights.ts'
import { fail } from '#gateway/errors.ts'
import { withHidden } from '#gateway/grouping/grouping.ts'
import { type Prepared, prepare, prepareAgain } from '#gateway/prepare.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { rowBatches } from '../../bulk/streamed-rows.ts'
import { bodyOf } from '../definition.ts'
import { type Aliases, aliasOf, type ParsedTransform, type Shape, shapeOf } from './candidates.ts'
import type { Lifetime } from './lifetime.ts'
import { atEnd, type RunRequest, requireSameCaller, requireStillOn } from './run-request.ts'

/** The rows of the source, with all names found and all rights checked. */
export type RunSource = {
  /** As at the beginning. */
  readonly caller: GatewayCaller
  /** As `schema.table`. */
  readonly table: string
  readonly shape: Shape
  /** Begins to read. */
  read(): Promise<Reading>
  /** The rows that are still to come were selected for the caller as it was. */
  recheck(): Promise<void>
  requireStillOn(): Promise<void>
}

type Reading = {
  /** JSON texts of rows, separated by commas. */
  readonly batches: AsyncIterable<string>
  /** A backend that returns fewer rows than there are must not look like one that has returned all. */
  requireComplete(): void
  /** Ends the reading, also of a batch that is under way, and frees its connection. */
  close(): Promise<void>
}

export async function openSource(
  kernel: Kernel,
  request: RunRequest,
  transform: ParsedTransform,
  lifetime: Lifetime,
): Promise<RunSource> {
  const atSource = <T>(work: () => Promise<T>) => atEnd(request, 'source', work)
  const prepareRead = () => preparedRead(kernel, request, lifetime)
  const asked = await atSource(prepareRead)
  const shape = shapeOf(asked.plan, transform)
  const read = await atSource(() => shapedRead(asked, shape))
  const { caller, plan } = read
  return {
    caller,
    table: `${plan.table.schema}.${plan.table.name}`,
    shape,
    read: () => startReading(read, request, (work) => lifetime.measure('source', () => atSource(work))),
    recheck: () => atSource(async () => requireSameCaller(caller, (await prepareRead()).caller)),
    requireStillOn: () => atSource(() => requireStillOn(caller, request.source)),
  }
}

type Read = Prepared<'stream'>

/** The read ends when the caller has left, the time is over, or the service stops. */
async function preparedRead(
  kernel: Kernel,
  { source, parts }: RunRequest,
  { presence }: Lifetime,
): Promise<Read> {
  const caller = await source.caller()
  requireOwnSession(caller)
  return prepare(kernel, { ...caller, presence }, bodyOf(parts.source), 'stream')
}

/** The read with the columns that the transform needs, under the names of the sink if rows are not grouped. */
async function shapedRead(read: Read, { grouping, hidden, aliases }: Shape): Promise<Read> {
  const { request } = read.plan
  if (grouping === undefined) return aliases.size === 0 ? read : renamedRead(read, aliases)
  return hidden.size === 0 ? read : prepareAgain(read, withHidden(request, hidden))
}

type NamedTerm = Exclude<ColumnTerm, { kind: 'all' }>

/** The database renames: renaming each row here takes a tenth of the processor time of a run. */
function renamedRead(read: Read, aliases: Aliases): Promise<Read> {
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

type Timed = <T>(work: () => Promise<T>) => Promise<T>

async function startReading(read: Read, request: RunRequest, timed: Timed): Promise<Reading> {
  const result = await timed(() => read.run())
  const { json } = result
  return {
    batches: rowBatches({ json: timedChunks(json, timed) }),
    requireComplete() {
      if (result.facts().hasMore) throw incomplete(request)
    },
    async close() {
      if (Symbol.asyncIterator in json) await json[Symbol.asyncIterator]().return?.()
    },
  }
}

async function* timedChunks(json: RowsResult['json'], timed: Timed): AsyncGenerator<Buffer> {
  if (!(Symbol.asyncIterator in json)) return yield* json
  const chunks = json[Symbol.asyncIterator]()
  for (;;) {
    const { value, done } = await timed(() => chunks.next())
    if (done) return
    yield value
  }
}

const incomplete = ({ parts, source: { client } }: RunRequest) =>
  fail('result_too_large', {
    message: 'The database of the source returns fewer rows than there are',
    hint: 'Read fewer rows at once: set source.limit or source.conditions.',
    details: { limit: parts.source.limit, step: 'source', client },
  })
