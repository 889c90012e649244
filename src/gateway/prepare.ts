import { collectedLines } from '#databases/drivers/csv-lines.ts'
import type {
  Driver,
  LinesResult,
  OpenTransaction,
  Persona,
  Presence,
  ResultColumn,
  RowsResult,
  WriteResult,
} from '#databases/drivers/driver.ts'
import { unsupported } from '#databases/failures.ts'
import { fallible } from '#databases/plan/leakproof.ts'
import type { Output, PlanOf } from '#databases/plan/plan.ts'
import type { Body } from '#databases/request/fields.ts'
import {
  type RequestOptions,
  readCount,
  readDelete,
  readFetch,
  readInsert,
  readUpdate,
} from '#databases/request/read-request.ts'
import type {
  CountRequest,
  DeleteRequest,
  InsertRequest,
  ReadRequest,
  UpdateRequest,
} from '#databases/request/request.ts'
import { exactlyCounted, within } from '#databases/request/scope.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Timings } from '#kernel/timings.ts'
import type { GatewayCaller } from './caller/caller.ts'
import { requirePersona, rightsOf } from './caller/caller-rights.ts'
import { planKey } from './plan-key.ts'
import { explainImpersonated } from './read-only-client.ts'

/** The data operations: the request and the result of each. */
type Operations = {
  fetch: { readonly request: ReadRequest; readonly result: RowsResult }
  /** A read whose rows are CSV. Without a limit it has all rows, up to `gateway.max_rows`. */
  csv: { readonly request: ReadRequest; readonly result: LinesResult }
  /** A read whose rows are worked with while it runs: as many as there are, for as long as it takes (gateway.md 9). */
  stream: { readonly request: ReadRequest; readonly result: RowsResult }
  /** As `stream`, as CSV. */
  export: { readonly request: ReadRequest; readonly result: LinesResult }
  count: { readonly request: CountRequest; readonly result: number }
  insert: { readonly request: InsertRequest; readonly result: WriteResult }
  update: { readonly request: UpdateRequest; readonly result: WriteResult }
  delete: { readonly request: DeleteRequest; readonly result: WriteResult }
}
type Kind = keyof Operations
type Request<K extends Kind> = Operations[K]['request']
type Result<K extends Kind> = Operations[K]['result']
type PlanFor<K extends Kind> = PlanOf<Request<K>>
type DataEvent = 'gateway_fetch' | 'gateway_insert' | 'gateway_update' | 'gateway_delete'

type Operation<K extends Kind> = {
  /** Emitted when it is done; undefined for none. */
  readonly event: DataEvent | undefined
  read(body: Body, options: RequestOptions): Request<K>
  run(driver: Driver, plan: PlanFor<K>, on?: OpenTransaction, presence?: Presence): Promise<Result<K>>
}

const OPERATIONS: { readonly [K in Kind]: Operation<K> } = {
  fetch: {
    event: 'gateway_fetch',
    read: readFetch,
    run: (driver, plan, on, presence) => driver.select(plan, on, presence),
  },
  csv: {
    event: 'gateway_fetch',
    read: (body, { limits, ...naming }) => ({
      ...readFetch(body, { ...naming, limits: { ...limits, rows: limits.maxRows } }),
      stripNulls: false,
    }),
    run: (driver, plan, _on, presence) => readCsv(driver, plan, presence),
  },
  stream: {
    event: undefined,
    read: (body, options) => readFetch(body, withoutRowLimit(options)),
    run: (driver, plan, _on, presence) => stream(driver, plan, presence),
  },
  export: {
    event: undefined,
    read: (body, options) => ({ ...readFetch(body, withoutRowLimit(options)), stripNulls: false }),
    run: (driver, plan, _on, presence) => exportCsv(driver, plan, presence),
  },
  count: {
    event: undefined,
    read: readCount,
    run: (driver, plan, on, presence) => driver.count(plan, on, presence),
  },
  insert: {
    event: 'gateway_insert',
    read: readInsert,
    run: (driver, plan, on, presence) => driver.insert(plan, on, presence),
  },
  update: {
    event: 'gateway_update',
    read: readUpdate,
    run: (driver, plan, on, presence) => driver.update(plan, on, presence),
  },
  delete: {
    event: 'gateway_delete',
    read: readDelete,
    run: (driver, plan, on, presence) => driver.delete(plan, on, presence),
  },
}

async function readCsv(driver: Driver, plan: PlanFor<'csv'>, presence?: Presence): Promise<LinesResult> {
  if (driver.selectCsv !== undefined) return driver.selectCsv(plan, presence)
  return collectedLines(await driver.select(plan, undefined, presence), columnsOf(plan))
}

async function exportCsv(driver: Driver, plan: PlanFor<'export'>, presence?: Presence): Promise<LinesResult> {
  if (driver.streamCsv !== undefined) return driver.streamCsv(plan, presence)
  return collectedLines(await stream(driver, plan, presence), columnsOf(plan))
}

/** The columns of the rows of a plan. */
export const columnsOf = ({ output }: PlanFor<'csv'>): readonly ResultColumn[] =>
  output.map((item) => ({ name: item.as, isJson: item.kind === 'relation' || isJson(item) }))

const isJson = ({ column, cast }: Extract<Output, { kind: 'column' }>): boolean =>
  (cast ?? column.base) === 'json' || (cast ?? column.base) === 'jsonb'

/** The largest limit that every driver accepts. No run reads that many rows in its time. */
const ALL_ROWS = 2 ** 31 - 2

const withoutRowLimit = ({ limits, ...naming }: RequestOptions): RequestOptions => ({
  ...naming,
  limits: { ...limits, rows: ALL_ROWS, maxRows: ALL_ROWS },
})

/** A driver without streams collects the rows, so it reads a bounded number. */
function stream(driver: Driver, plan: PlanFor<'stream'>, presence?: Presence): Promise<RowsResult> {
  if (driver.stream !== undefined) return driver.stream(plan, presence)
  if (plan.request.page.limit > COLLECTED)
    throw unsupported(driver.name, `reads of more than ${COLLECTED} rows; set a limit`)
  return driver.select(plan, undefined, presence)
}
const COLLECTED = 10_000

/** An operation whose names are found and whose rights are granted. It runs by itself or in an open transaction. */
export type Prepared<K extends Kind = Kind> = {
  readonly kind: K
  readonly caller: GatewayCaller
  readonly plan: PlanFor<K>
  readonly event: DataEvent | undefined
  /** Of the process, by plan. */
  readonly timings: Timings
  run(on?: OpenTransaction): Promise<Result<K>>
}

/**
 * The only way to the rows of a client (decision 35): reads the body, finds every name, and requires the right to every table of the
 * operation. Throws the refusal of a caller who lacks one, and of a body that goes beyond the caller's scope.
 */
export async function prepare<K extends Kind>(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  kind: K,
): Promise<Prepared<K>> {
  const read = OPERATIONS[kind].read(body, requestOptionsOf(kernel))
  const { scope, persona } = caller
  const request = persona === undefined ? read : exactlyCounted(read)
  const scoped = scope === undefined ? request : within(request, scope)
  const { statements: timings } = kernel.metrics
  return prepared({ kind, caller, plan: await plan(caller, scoped), timings }, caller.presence)
}

/** The same operation with another request, which is planned and whose rights are required again. */
export async function prepareAgain<K extends Kind>(
  { caller, kind, timings }: Prepared<K>,
  request: Request<K>,
): Promise<Prepared<K>> {
  return prepared({ kind, caller, plan: await plan(caller, request), timings }, caller.presence)
}

/**
 * Several inserts as one: the plan of the first with the rows of all. Each has its rights already, for its own table and as its own
 * persona, so these have to be the same. It continues when a caller leaves.
 */
export function joinInserts(
  first: Prepared<'insert'>,
  others: readonly Prepared<'insert'>[],
): Prepared<'insert'> {
  const { caller, plan, timings } = first
  if (others.some((other) => targetOf(other) !== targetOf(first)))
    throw new Error('Inserts into several tables')
  const rows = [first, ...others].flatMap((insert) => insert.plan.rows)
  const joined = { ...plan, rows, request: { ...plan.request, rows } }
  return prepared({ kind: 'insert', caller, plan: joined, timings }, undefined)
}

const targetOf = ({ caller: { client, persona }, plan: { request } }: Prepared<'insert'>): string =>
  JSON.stringify([client.name, persona, request.table])

/** The caller of a client with row-level security. Its backend acts as this persona, and as no other role. */
export function actingAs(caller: GatewayCaller, persona: Persona): GatewayCaller {
  const { name, policies } = driverOf(caller)
  // The configuration rejects row-level security for drivers without policies.
  if (policies === undefined) throw new Error(`${name} has no row-level security`)
  return { ...caller, persona, backend: policies.as(persona) }
}

async function plan<K extends Kind>(caller: GatewayCaller, request: Request<K>): Promise<PlanFor<K>> {
  requirePersona(caller)
  const driver = driverOf(caller)
  const planned = await driver.plan(request, rightsOf(caller))
  if ('check' in planned && planned.check !== undefined && driver.checksWrites !== true)
    throw unsupported(driver.name, 'inserts and updates through a public route with conditions')
  const unkept = driver.keepsGuards === true ? undefined : fallible(planned)
  if (unkept !== undefined)
    throw unsupported(
      driver.name,
      `conditions on ${unkept.column.name} through a public route with conditions`,
    )
  return planned
}

function prepared<K extends Kind>(
  { kind, caller, plan, timings }: Omit<Prepared<K>, 'event' | 'run'>,
  presence: Presence | undefined,
): Prepared<K> {
  const { event, run } = OPERATIONS[kind]
  const driver = driverOf(caller)
  const { isImpersonated, client } = caller
  return {
    kind,
    caller,
    plan,
    event,
    timings,
    async run(on) {
      const began = performance.now()
      try {
        const result = run(driver, plan, on, presence)
        return await (isImpersonated ? result.catch(explainImpersonated) : result)
      } finally {
        timings.observe(planKey(client.name, kind, plan), performance.now() - began)
      }
    },
  }
}

/** Every backend of a caller is a driver (identify.ts, `actingAs`). No other file turns the type back. */
const driverOf = ({ backend }: GatewayCaller): Driver => backend as Driver

/** For conditions of a record: limits that were lowered after it was stored do not hold for it. */
export function storedOptionsOf(kernel: Pick<Kernel, 'config'>): RequestOptions {
  const { limits, ...options } = requestOptionsOf(kernel)
  const unlimited = { conditions: Number.POSITIVE_INFINITY, nesting: Number.POSITIVE_INFINITY }
  return { ...options, limits: { ...limits, ...unlimited } }
}

/** Limits and naming of the bodies of data operations, from the configuration. */
export const requestOptionsOf = ({ config }: Pick<Kernel, 'config'>): RequestOptions => ({
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
})
