import { hash } from 'node:crypto'
import type { OpenTransaction, RowsResult, WriteResult } from '#databases/drivers/driver.ts'
import type { InsertPlan, Plan, ReadPlan, WritePlan } from '#databases/plan/plan.ts'
import type { Body } from '#databases/request/fields.ts'
import {
  type RequestOptions,
  readCount,
  readDelete,
  readFetch,
  readInsert,
  readUpdate,
} from '#databases/request/read-request.ts'
import type { DataRequest, ReadRequest } from '#databases/request/request.ts'
import { emitAfterCommit, type Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from '../caller.ts'
import { rightsOf } from '../caller-rights.ts'
import type { Grouping } from './grouping.ts'
import { group, planGrouped, readGrouping } from './post-processing.ts'
import type { Outcome, ReadCache } from './read-cache.ts'

export type Fetched = {
  readonly rows: RowsResult
  readonly cacheKey: string
  /** JSON, when the body asked for groups. */
  readonly postProcessing: string | undefined
}

/** An operation whose names are found and whose rights are granted: it only has to run, by itself or in an open transaction. */
export type Ready<P extends Plan, T> = {
  readonly plan: P
  readonly event: 'gateway_fetch' | 'gateway_data' | 'gateway_insert' | 'gateway_update' | 'gateway_delete'
  readonly run: (on?: OpenTransaction) => Promise<T>
}

/** Rows of one table and its relations. `event` is what webhooks hear of. */
export async function fetchRows(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  asked: Asked<Fetched> & {
    readonly event: 'gateway_fetch' | 'gateway_data'
    readonly stripNulls: boolean
  },
): Promise<Fetched & { readonly outcome: Outcome }> {
  const ready = await readyFetch(kernel, caller, body, asked.stripNulls)
  const { plan, key, run } = ready
  const { value, outcome } = await asked.cache({ caller, plan, key, fresh: asked.fresh }, () => run())
  tellOf(kernel, caller, { ...ready, event: asked.event }, 0)
  return { ...value, outcome }
}

/** The cache of answers, and whether the caller wants one from the database. */
type Asked<T> = { readonly cache: ReadCache<T>; readonly fresh: boolean }

/** Bytes that an answer holds in memory, which are those behind its chunks; one that still streams is not cached. */
export const bytesOf = ({ rows, postProcessing = '' }: Fetched): number =>
  Array.isArray(rows.json)
    ? rows.json.reduce((sum, { buffer }) => sum + buffer.byteLength, 1_024 + 2 * postProcessing.length)
    : Number.POSITIVE_INFINITY

export async function readyFetch(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  stripNulls: boolean,
): Promise<Ready<ReadPlan, Fetched> & { readonly key: string }> {
  const { driver } = caller
  const options = optionsOf(kernel, stripNulls)
  const request = readFetch(body, options)
  const grouping = readGrouping(body, options.snakeCase ?? false)
  const planning = (read: ReadRequest) => driver.plan(read, rightsOf(caller))
  const { plan, hidden } =
    grouping === undefined
      ? { plan: await planning(request), hidden: NONE }
      : await planGrouped(planning, request, grouping)
  const key = cacheKey(caller, request, grouping)
  const run = async (on?: OpenTransaction): Promise<Fetched> => {
    const rows = await driver.select(plan, on, caller.presence)
    const grouped = grouping && (await group(rows, grouping, hidden, kernel.config.limits.answer))
    return { rows: grouped?.rows ?? rows, cacheKey: key, postProcessing: grouped?.postProcessing }
  }
  return { plan, event: 'gateway_fetch', run, key }
}

const NONE: ReadonlySet<string> = new Set()

export type Counted = { readonly count: number; readonly cacheKey: string; readonly milliseconds: number }

export async function countRows(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  { cache, fresh }: Asked<number>,
): Promise<Counted & { readonly outcome: Outcome }> {
  const began = performance.now()
  const { driver } = caller
  const request = readCount(body, optionsOf(kernel, false))
  const plan = await driver.plan(request, rightsOf(caller))
  const key = cacheKey(caller, request)
  const { value, outcome } = await cache({ caller, plan, key, fresh }, () =>
    driver.count(plan, undefined, caller.presence),
  )
  return { count: value, cacheKey: key, milliseconds: Math.round(performance.now() - began), outcome }
}

/** `run` is how the insert runs when not at once and by itself. */
export const insertRows = async (
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  run?: (ready: ReadyWrite<InsertPlan>) => Promise<WriteResult>,
): Promise<WriteResult> => runWrite(kernel, caller, await readyInsert(kernel, caller, body), run)

export const updateRows = async (kernel: Kernel, caller: GatewayCaller, body: Body): Promise<WriteResult> =>
  runWrite(kernel, caller, await readyUpdate(kernel, caller, body))

export const deleteRows = async (kernel: Kernel, caller: GatewayCaller, body: Body): Promise<WriteResult> =>
  runWrite(kernel, caller, await readyDelete(kernel, caller, body))

export type ReadyWrite<P extends WritePlan = WritePlan> = Ready<P, WriteResult>

export async function readyInsert(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
): Promise<ReadyWrite<InsertPlan>> {
  const { driver } = caller
  const request = readInsert(body, optionsOf(kernel, false))
  const plan = await driver.plan(request, rightsOf(caller))
  return { plan, event: 'gateway_insert', run: (on) => driver.insert(plan, on, caller.presence) }
}

export async function readyUpdate(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<ReadyWrite> {
  const { driver } = caller
  const request = readUpdate(body, optionsOf(kernel, false))
  const plan = await driver.plan(request, rightsOf(caller))
  return { plan, event: 'gateway_update', run: (on) => driver.update(plan, on, caller.presence) }
}

export async function readyDelete(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<ReadyWrite> {
  const { driver } = caller
  const request = readDelete(body, optionsOf(kernel, false))
  const plan = await driver.plan(request, rightsOf(caller))
  return { plan, event: 'gateway_delete', run: (on) => driver.delete(plan, on, caller.presence) }
}

async function runWrite<P extends WritePlan>(
  kernel: Kernel,
  caller: GatewayCaller,
  ready: ReadyWrite<P>,
  run = (write: ReadyWrite<P>) => write.run(),
): Promise<WriteResult> {
  const result = await run(ready)
  tellOf(kernel, caller, ready, result.affected)
  return result
}

/** Says what was done, once it is done for good. */
export function tellOf(
  kernel: Kernel,
  { client, requestId }: GatewayCaller,
  { plan, event }: Pick<Ready<Plan, unknown>, 'plan' | 'event'>,
  rows: number,
): void {
  const { schema, name } = plan.table
  emitAfterCommit(kernel, event, { client: client.name, requestId, table: `${schema}.${name}`, rows })
}

/** What the configuration says about the bodies of data operations. */
export const optionsOf = ({ config }: Kernel, stripNulls: boolean): RequestOptions => ({
  limits: {
    columns: config.limits.columns,
    conditions: config.limits.conditions,
    nesting: config.limits.nesting,
    relations: config.limits.relations,
    insertRows: config.limits.insert_rows,
    rows: config.limits.rows,
    maxRows: config.gateway.max_rows,
  },
  snakeCase: config.gateway.force_camel_case_to_snake_case,
  stripNulls,
})

/** Names a read: the same client, request, role and claims give the same 64 hex digits. */
const cacheKey = ({ client, persona }: GatewayCaller, request: DataRequest, grouping?: Grouping): string =>
  hash('sha256', JSON.stringify([client.name, request, grouping, persona]))
