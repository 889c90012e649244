import { type Bounds, boundMethods, type Connection, post, UNBOUNDED } from '../request.ts'
import type { Condition, Target } from './body.ts'
import { columnsOf } from './columns.ts'
import { conditionMethods } from './conditions.ts'
import { awaitable, type Found, found, type Mode, once } from './result.ts'
import { STEP, type Step } from './step.ts'
import { runSteps } from './transaction.ts'

type WriteState = {
  readonly kind: 'insert' | 'update' | 'delete'
  /** The body of each statement: an upsert has one for each row. */
  readonly bodies: readonly (Target & { readonly insert_body?: unknown })[]
  readonly conditions: readonly Condition[]
  /** The columns to return. Undefined: no rows. */
  readonly columns?: readonly string[]
  readonly isUnbounded?: boolean
  readonly key?: string
  readonly mode: Mode
  readonly bounds: Bounds
}

export const newWrite = (
  connection: Connection,
  kind: WriteState['kind'],
  bodies: WriteState['bodies'],
): object => write(connection, { kind, bodies, conditions: [], mode: 'none', bounds: UNBOUNDED })

/** Rows that are written when this is awaited: once, however often. */
function write(connection: Connection, state: WriteState): object {
  const { kind, conditions, bounds, key } = state
  const step = stepOf(state)
  const next = (change: Partial<WriteState>): object => write(connection, { ...state, ...change })
  return {
    ...awaitable(once(() => send(connection, step, state))),
    ...(kind !== 'insert' && conditionMethods((...more) => next({ conditions: [...conditions, ...more] }))),
    ...boundMethods(bounds, next),
    [STEP]: bounds === UNBOUNDED && key === undefined ? step : undefined,
    select: (selection: unknown = '*') => next({ columns: columnsOf(selection), mode: 'many' }),
    single: () => next({ mode: 'one' }),
    maybeSingle: () => next({ mode: 'maybe' }),
    unbounded: () => next({ isUnbounded: true }),
    idempotent: (key: string) => next({ key }),
  }
}

async function send(connection: Connection, step: Step, state: WriteState): Promise<Found> {
  const { kind, key, mode, bounds } = state
  const [only] = step.operations
  if (only !== undefined && step.operations.length === 1 && key === undefined)
    return found(await post(connection, { path: `/gateway/${kind}`, body: only.payload, ...bounds }), mode)
  const [written] = await runSteps(connection, [step], { key, bounds })
  return written as Found // of the only step
}

/** Of `single()`, the service writes one row at most. How many an insert would write is known here. */
function stepOf({ kind, bodies, conditions, columns, isUnbounded, mode }: WriteState): Step {
  const isSingle = mode === 'one' || mode === 'maybe'
  if (isSingle && kind === 'insert' && bodies.flatMap(({ insert_body: rows }) => rows).length > 1)
    throw new TypeError('single() is for one row')
  const output = columns === undefined ? { head: true } : { columns }
  const filter =
    kind === 'insert' ? {} : { conditions, allow_unbounded: isUnbounded, single: isSingle || undefined }
  return { operations: bodies.map((body) => ({ kind, payload: { ...body, ...filter, ...output } })), mode }
}
