import { type Bounds, type Connection, post } from '../request.ts'
import type { Condition, Target } from './body.ts'
import { columnsOf } from './columns.ts'
import { conditionMethods } from './conditions.ts'
import { awaitable, type Found, found, type Mode, once } from './result.ts'
import { STEP, type Step } from './step.ts'
import { runSteps } from './transaction.ts'

type WriteState = {
  readonly kind: 'insert' | 'update' | 'delete'
  /** The body of each statement: an upsert has one for each row. */
  readonly bodies: readonly (Target & object)[]
  readonly conditions: readonly Condition[]
  /** The columns to return. Undefined: no rows. */
  readonly columns?: readonly string[]
  readonly isUnbounded?: boolean
  readonly key?: string
  readonly mode: Mode
  readonly bounds: Bounds
}

/** Rows that are written when this is awaited: once, however often. */
export function write(connection: Connection, state: WriteState) {
  const { kind, conditions, bounds } = state
  const next = (change: Partial<WriteState>): object => write(connection, { ...state, ...change })
  return {
    ...awaitable(once(() => send(connection, state))),
    ...(kind !== 'insert' && conditionMethods((...more) => next({ conditions: [...conditions, ...more] }))),
    [STEP]: stepOf(state),
    select: (selection: unknown = '*') => next({ columns: columnsOf(selection), mode: 'many' }),
    single: () => next({ mode: 'one' }),
    maybeSingle: () => next({ mode: 'maybe' }),
    unbounded: () => next({ isUnbounded: true }),
    idempotent: (key: string) => next({ key }),
    signal: (signal: AbortSignal) => next({ bounds: { ...bounds, signal } }),
    timeout: (timeout: number) => next({ bounds: { ...bounds, timeout } }),
  }
}

async function send(connection: Connection, state: WriteState): Promise<Found> {
  const { kind, key, mode, bounds } = state
  const step = stepOf(state)
  const [only] = step.operations
  if (only !== undefined && step.operations.length === 1 && key === undefined)
    return found(
      await post(connection, {
        path: `/gateway/${kind}`,
        body: only.payload,
        isRepeatable: false,
        ...bounds,
      }),
      mode,
    )
  const [written] = await runSteps(connection, [step], { key, bounds })
  if (written === undefined) throw new TypeError('There are no rows to write')
  return written
}

function stepOf({ kind, bodies, conditions, columns, isUnbounded, mode }: WriteState): Step {
  const output = columns === undefined ? { head: true } : { columns }
  const filter = kind === 'insert' ? {} : { conditions, ...(isUnbounded && { allow_unbounded: true }) }
  return { operations: bodies.map((body) => ({ kind, payload: { ...body, ...filter, ...output } })), mode }
}
