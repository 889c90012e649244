import type { Mode } from './result.ts'

/** Under this, a builder has its part of a transaction. */
export const STEP: unique symbol = Symbol('step')

export type Operation = {
  readonly kind: 'fetch' | 'insert' | 'update' | 'delete'
  readonly payload: object
}

/** The operations of a builder, and what their results are together. */
export type Step = { readonly operations: readonly Operation[]; readonly mode: Mode }

export const oneStep = (kind: Operation['kind'], payload: object, mode: Mode): Step => ({
  operations: [{ kind, payload }],
  mode,
})
