import { hash } from 'node:crypto'
import type { OpenTransaction, RowsResult, WriteResult } from '#databases/drivers/driver.ts'
import { type Body, flag, wholeNumber } from '#databases/request/fields.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { type GatewayCaller, kernelOf } from '../caller/caller.ts'
import { requireSamePersona } from '../caller/caller-rights.ts'
import { rowsOfPlan, seeRows } from '../event-rows.ts'
import { type GroupedFetch, group, prepareFetch } from '../grouping/grouped-fetch.ts'
import { type Prepared, prepare, prepareAgain } from '../prepare.ts'
import type { Outcome, ReadCache } from './read-cache.ts'

export type FetchAnswer = {
  readonly rows: RowsResult
  readonly cacheKey: string
  /** JSON text of the groups, if the body has `group_by`. */
  readonly postProcessing: string | undefined
}

/** `total_pages` of the body is returned as it was sent. */
export type Echo = { readonly totalPages: number | undefined }
export const readEcho = (body: Body): Echo => ({ totalPages: wholeNumber(body, 'total_pages') })

/** The read cache, and whether the caller bypasses it. */
type Caching<T> = { readonly cache: ReadCache<T>; readonly fresh: boolean }

/** Fetches rows of one table and its relations, by default without the cache. `event` is the type of the event that is emitted. */
export async function fetchRows(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  {
    cache = withoutCache,
    fresh = false,
    event = 'gateway_fetch',
  }: Partial<Caching<FetchAnswer>> & { readonly event?: ReadEvent } = {},
): Promise<FetchAnswer & Echo & { readonly outcome: Outcome }> {
  const echo = readEcho(body)
  const fetch = await prepareFetch(kernel, caller, body)
  const key = cacheKey(fetch)
  const { value, outcome } = await cache({ caller, plan: fetch.plan, key, fresh }, () =>
    runFetch(kernel, fetch, key),
  )
  const { rows, json } = await seeRows(kernel, occasionOf(fetch, event), value.rows)
  await emitEvent(kernel, fetch, { affected: 0, json }, event)
  return { ...value, ...echo, rows, outcome }
}

const withoutCache: ReadCache<FetchAnswer> = async (_asked, read) => ({
  value: await read(),
  outcome: undefined,
})

/** The body of a fetch under the header X-Strip-Nulls: its own member takes precedence. */
export const withStripNulls = (body: Body): Body => ({
  ...body,
  strip_nulls: flag(body, 'strip_nulls', true),
})

/** Runs a fetch and groups its rows. `key` is the cache key of the fetch. */
export async function runFetch(
  kernel: Kernel,
  fetch: GroupedFetch,
  key: string,
  on?: OpenTransaction,
): Promise<FetchAnswer> {
  const rows = await fetch.run(on)
  if (fetch.groups === undefined) return { rows, cacheKey: key, postProcessing: undefined }
  const { grouping, hidden } = fetch.groups
  return { ...(await group(rows, grouping, hidden, kernel.config.limits.answer)), cacheKey: key }
}

/** Memory size of a response: the bytes of the buffers under its chunks. Infinite for a stream, which cannot be cached. */
export const bytesOf = ({ rows, postProcessing = '' }: FetchAnswer): number =>
  Array.isArray(rows.json)
    ? rows.json.reduce((sum, { buffer }) => sum + buffer.byteLength, 1_024 + 2 * postProcessing.length)
    : Number.POSITIVE_INFINITY

type CountAnswer = { readonly count: number; readonly cacheKey: string; readonly milliseconds: number }

export async function countRows(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  { cache, fresh }: Caching<number>,
): Promise<CountAnswer & { readonly outcome: Outcome }> {
  const began = performance.now()
  const count = await prepare(kernel, caller, body, 'count')
  const key = cacheKey(count)
  const { value, outcome } = await cache({ caller, plan: count.plan, key, fresh }, () => count.run())
  return { count: value, cacheKey: key, milliseconds: Math.round(performance.now() - began), outcome }
}

/** `run` runs the insert, by default at once and as its own statement. */
export async function insertRows(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  run = (insert: Prepared<'insert'>): Promise<WriteResult> => insert.run(),
): Promise<WriteResult> {
  const insert = await prepare(kernel, caller, body, 'insert')
  const result = await run(insert)
  await emitEvent(kernel, insert, result)
  return result
}

/** The same insert after a wait, for the caller as it is now: rights are required again if key or client have changed. */
export async function renewedInsert(
  insert: Prepared<'insert'>,
  now: GatewayCaller,
): Promise<Prepared<'insert'>> {
  const { caller, plan } = insert
  requireSamePersona(caller, now)
  if (now.grant === caller.grant && now.client === caller.client) return insert
  return prepareAgain({ ...insert, caller: now }, plan.request)
}

/** Updates or deletes the rows that match the conditions of the body. */
export async function writeRows(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  kind: 'update' | 'delete',
): Promise<WriteResult> {
  const write = await prepare(kernel, caller, body, kind)
  const result = await write.run()
  await emitEvent(kernel, write, result)
  return result
}

/** The outcome of an operation: rows that were written, and the JSON of those that it returned. */
export type Done = { readonly affected: number; readonly json: readonly Buffer[] | undefined }

/** The type of the event of a read, by its route. */
export type ReadEvent = 'gateway_fetch' | 'gateway_data'

type DataEvent = ReadEvent | NonNullable<Prepared['event']>

/** Emits the event of an operation that is committed, with the rows that it returned. */
export async function emitEvent(
  kernel: Kernel,
  operation: Pick<Prepared, 'caller' | 'plan' | 'event'>,
  done: Done,
  name: DataEvent | undefined = operation.event,
): Promise<void> {
  // Counting emits nothing.
  if (name === undefined || operation.plan.kind === 'count') return
  const { client, table } = occasionOf(operation, name)
  const data = { client, request_id: operation.caller.requestId, table, affected_rows: done.affected }
  await emit(kernelOf(kernel, operation.caller), name, data, rowsOfPlan(kernel, done, operation.plan))
}

const occasionOf = ({ caller, plan }: Pick<Prepared, 'caller' | 'plan'>, name: DataEvent) => ({
  name,
  client: caller.client.name,
  table: `${plan.table.schema}.${plan.table.name}`,
})

/** Cache key of a read: 64 hex digits that depend on client, request, role and claims. */
export const cacheKey = ({ caller, plan, groups }: Read): string =>
  hash(
    'sha256',
    JSON.stringify([caller.client.name, groups?.request ?? plan.request, groups?.grouping, caller.persona]),
  )

type Read = Pick<Prepared<'fetch' | 'count'>, 'caller' | 'plan'> & Pick<GroupedFetch, 'groups'>
