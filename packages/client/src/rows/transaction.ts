import { type Bounds, boundMethods, type Connection, post, type Reply } from '../request.ts'
import { awaitable, type Found, found, once } from './result.ts'
import { STEP, type Step } from './step.ts'

export type TransactionOptions = {
  readonly isolation?: 'read_committed' | 'repeatable_read' | 'serializable'
  readonly readOnly?: boolean
}

type Run = {
  /** Under a key the service runs a transaction once, so it may be sent again. */
  readonly key: string | undefined
  readonly bounds: Bounds
  readonly options?: TransactionOptions
}

/** Runs the steps in their order, all or none of them. */
export async function runSteps(
  connection: Connection,
  steps: readonly Step[],
  run: Run,
): Promise<readonly Found[]> {
  const { key, bounds, options: { isolation, readOnly } = {} } = run
  const operations = steps
    .flatMap((step) => step.operations)
    .map((operation, index) => ({ id: String(index), ...operation }))
  const { results = [] } = await post(connection, {
    path: '/gateway/transaction',
    body: {
      operations,
      options: { isolation_level: isolation, read_only: readOnly },
    },
    key,
    ...bounds,
  })
  let at = 0
  return steps.map(({ operations: { length }, mode }) => {
    at += length
    return found(joined(results.slice(at - length, at)), mode)
  })
}

/** Several operations of one step answer as one. */
function joined(replies: readonly Reply[]): Reply {
  const [only] = replies
  if (only !== undefined && replies.length === 1) return only
  const sum = (member: 'affected_rows' | 'rows') =>
    replies.reduce((total, reply) => total + (reply[member] ?? 0), 0)
  return {
    data: replies.flatMap(({ data }) => data),
    affected_rows: sum('affected_rows'),
    data_omitted: replies.some(({ data_omitted }) => data_omitted),
    rows: sum('rows'),
  }
}

export type TransactionState = {
  readonly steps: readonly { readonly [STEP]: Step | undefined }[]
  readonly options: TransactionOptions
  readonly key?: string
  readonly bounds: Bounds
}

/** Is sent when it is awaited: once, however often. */
export function transaction(connection: Connection, state: TransactionState): object {
  const { steps, options, key, bounds } = state
  const next = (change: Partial<TransactionState>): object => transaction(connection, { ...state, ...change })
  const whole = steps.flatMap((step) => step[STEP] ?? [])
  if (whole.length < steps.length) throw new TypeError('A step has no signal, timeout or key of its own')
  const run = async (): Promise<Found> => {
    const all = await runSteps(connection, whole, { key, bounds, options })
    return {
      data: all.map(({ data }) => data),
      count: all.reduce((sum, { count }) => sum + (count ?? 0), 0),
      hasMore: all.some(({ hasMore }) => hasMore),
    }
  }
  return {
    ...awaitable(once(run)),
    ...boundMethods(bounds, next),
    idempotent: (given: string) => next({ key: given }),
  }
}
