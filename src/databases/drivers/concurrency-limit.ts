import { fail } from '#databases/failures.ts'

export type ConcurrencyLimit = {
  /** Waits for a place. The returned function gives the place back. */
  enter(): Promise<() => void>
  stats(): { readonly inside: number; readonly waiting: number }
}

type Waiter = { readonly enter: () => void; readonly timer: NodeJS.Timeout }

type Options = {
  readonly places: number
  /** Waiters beyond this number fail at once, instead of queueing for a slow database. */
  readonly waiting: number
  /** Milliseconds. */
  readonly patience: number
}

/** Limits how many run at once to `places`; others wait in order, each at most for `patience`. */
export function createConcurrencyLimit({ places, waiting, patience }: Options): ConcurrencyLimit {
  const waiters: Waiter[] = []
  let inside = 0

  function leave(): void {
    const next = waiters.shift()
    if (next === undefined) inside--
    else next.enter()
  }

  const pass = () => {
    let left = false
    return () => {
      if (!left) leave()
      left = true
    }
  }

  function wait(): Promise<() => void> {
    if (waiters.length >= waiting) throw fail('client_busy', BUSY)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiters.splice(waiters.indexOf(waiter), 1)
        reject(fail('client_busy', BUSY))
      }, patience)
      const enter = () => {
        clearTimeout(timer)
        resolve(pass())
      }
      const waiter: Waiter = { enter, timer }
      waiters.push(waiter)
    })
  }

  return {
    async enter() {
      if (inside >= places) return wait()
      inside++
      return pass()
    },
    stats: () => ({ inside, waiting: waiters.length }),
  }
}

const BUSY = { headers: { 'retry-after': '1' } }
