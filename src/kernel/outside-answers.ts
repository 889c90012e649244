import { edge } from './http/failures.ts'

/** The answers of other services to a transaction, and values of it that stay, by key. They outlive its runs. */
export type OutsideAnswers = Map<string, Outcome>

type Outcome = { readonly value: unknown } | { readonly error: unknown }

/** A kernel, inside of a transaction or outside. */
type Kernel = { readonly notes?: { readonly outside: OutsideAnswers } }

/**
 * Thrown by the work of a transaction that needs an answer of another service. The transaction is rolled back, so that neither a lock nor a
 * connection is held while `atomically` asks. Then the work runs again, and states all that it relies on again.
 */
class OutsideQuestion extends Error {
  readonly key: string
  readonly ask: (kernel: unknown) => Promise<unknown>
  constructor(key: string, ask: (kernel: unknown) => Promise<unknown>) {
    super('a transaction needs an answer of another service')
    this.key = key
    this.ask = ask
  }
}

/** The answer, if there is one already. */
export function answeredOutside<T>({ notes }: Kernel, key: string): T | undefined {
  const outcome = notes?.outside.get(key)
  // As below.
  return outcome !== undefined && 'value' in outcome ? (outcome.value as T) : undefined
}

/** The answer, or its failure. The key has all that the question says, so that another state of the database is another question. */
export function outsideAnswer<K extends Kernel, T>(
  kernel: K,
  key: string,
  ask: (kernel: K) => Promise<T>,
): T {
  if (kernel.notes === undefined)
    throw new Error('another service is asked in a transaction, which runs again with its answer')
  const outcome = kernel.notes.outside.get(key)
  // `atomically` asks with its own kernel, which the one of the work is made of.
  if (outcome === undefined) throw new OutsideQuestion(key, (outer) => ask(outer as K))
  if ('error' in outcome) throw outcome.error
  // Only `ask` of the same key has set it.
  return outcome.value as T
}

/** The value that the first run of the transaction has made, in every further run; outside of a transaction a new one. */
export function inEveryRun<T>({ notes }: Kernel, key: string, make: () => T): T {
  const kept = notes?.outside.get(key)
  // Only this function sets the key.
  if (kept !== undefined && 'value' in kept) return kept.value as T
  const value = make()
  notes?.outside.set(key, { value })
  return value
}

/** Questions of one transaction. More come up only when others change what it works on again and again. */
const MAX_QUESTIONS = 8

/** Runs the work until it needs no further answer. */
export async function askingOutside<T>(
  kernel: object,
  run: (outside: OutsideAnswers) => Promise<T>,
): Promise<T> {
  const outside: OutsideAnswers = new Map()
  for (let asked = 0; ; asked++) {
    try {
      return await run(outside)
    } catch (error) {
      if (!(error instanceof OutsideQuestion)) throw error
      if (asked === MAX_QUESTIONS) throw edge('service_unavailable', { cause: error })
      outside.set(error.key, await outcomeOf(error.ask(kernel)))
    }
  }
}

async function outcomeOf(asking: Promise<unknown>): Promise<Outcome> {
  try {
    return { value: await asking }
  } catch (error) {
    return { error }
  }
}
