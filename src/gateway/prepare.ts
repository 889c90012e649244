import type {
  Driver,
  OpenTransaction,
  Persona,
  Presence,
  RowsResult,
  WriteResult,
} from '#databases/drivers/driver.ts'
import type { PlanOf } from '#databases/plan/plan.ts'
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
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from './caller.ts'
import { rightsOf } from './caller-rights.ts'

/** The data operations: what each asks of the database, and what it gets. */
type Operations = {
  fetch: { readonly request: ReadRequest; readonly answer: RowsResult }
  count: { readonly request: CountRequest; readonly answer: number }
  insert: { readonly request: InsertRequest; readonly answer: WriteResult }
  update: { readonly request: UpdateRequest; readonly answer: WriteResult }
  delete: { readonly request: DeleteRequest; readonly answer: WriteResult }
}
export type Kind = keyof Operations
type Request<K extends Kind> = Operations[K]['request']
type Answer<K extends Kind> = Operations[K]['answer']
type PlanFor<K extends Kind> = PlanOf<Request<K>>
type DataEvent = 'gateway_fetch' | 'gateway_insert' | 'gateway_update' | 'gateway_delete'

type Operation<K extends Kind> = {
  /** What webhooks hear of; undefined where they hear nothing. */
  readonly event: DataEvent | undefined
  read(body: Body, options: RequestOptions): Request<K>
  run(driver: Driver, plan: PlanFor<K>, on?: OpenTransaction, presence?: Presence): Promise<Answer<K>>
}

const OPERATIONS: { readonly [K in Kind]: Operation<K> } = {
  fetch: {
    event: 'gateway_fetch',
    read: readFetch,
    run: (driver, plan, on, presence) => driver.select(plan, on, presence),
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

/** An operation whose names are found and whose rights are granted: it only has to run, by itself or in an open transaction. */
export type Prepared<K extends Kind = Kind> = {
  readonly kind: K
  readonly caller: GatewayCaller
  readonly plan: PlanFor<K>
  readonly event: DataEvent | undefined
  run(on?: OpenTransaction): Promise<Answer<K>>
}

/**
 * The one way to the rows of a client (decision 35): reads the body, finds every name, and asks for the right to every table that the
 * operation touches. Throws the refusal of a caller who lacks one.
 */
export async function prepare<K extends Kind>(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  kind: K,
): Promise<Prepared<K>> {
  const request = OPERATIONS[kind].read(body, requestOptionsOf(kernel))
  return prepared(caller, kind, await plan(caller, request), caller.presence)
}

/** The same operation with another request of its kind, which is planned and permitted anew. */
export async function prepareAgain<K extends Kind>(
  { caller, kind }: Prepared<K>,
  request: Request<K>,
): Promise<Prepared<K>> {
  return prepared(caller, kind, await plan(caller, request), caller.presence)
}

/**
 * Inserts of one form as one: the plan of the first with the rows of all. Each of them is permitted already. It goes on when one of
 * their callers leaves.
 */
export function joinInserts(
  first: Prepared<'insert'>,
  others: readonly Prepared<'insert'>[],
): Prepared<'insert'> {
  const rows = [first, ...others].flatMap(({ plan }) => plan.rows)
  const { caller, plan } = first
  return prepared(caller, 'insert', { ...plan, rows, request: { ...plan.request, rows } }, undefined)
}

/** The caller of a client with row-level security. From here on the database knows the caller as this persona. */
export function actingAs(caller: GatewayCaller, persona: Persona): GatewayCaller {
  const { name, policies } = driverOf(caller)
  // The configuration refuses row-level security on a client whose driver has no policies.
  if (policies === undefined) throw new Error(`${name} has no row-level security`)
  return { ...caller, persona, backend: policies.as(persona) }
}

const plan = <K extends Kind>(caller: GatewayCaller, request: Request<K>): Promise<PlanFor<K>> =>
  driverOf(caller).plan(request, rightsOf(caller))

function prepared<K extends Kind>(
  caller: GatewayCaller,
  kind: K,
  plan: PlanFor<K>,
  presence: Presence | undefined,
): Prepared<K> {
  const { event, run } = OPERATIONS[kind]
  const driver = driverOf(caller)
  return { kind, caller, plan, event, run: (on) => run(driver, plan, on, presence) }
}

/** The only place that has the whole driver: every backend of a caller is one (identify.ts, `actingAs`). */
const driverOf = ({ backend }: GatewayCaller): Driver => backend as Driver

/** What the configuration says about the bodies of data operations. */
export const requestOptionsOf = ({ config }: Kernel): RequestOptions => ({
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
