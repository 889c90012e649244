import { edge } from './http/failures.ts'

/**
 * Runs work that keeps a processor busy: `running` at once, `waiting` in line, and past that 503. So a flood of
 * sign-ins takes the processors that it is given and every other endpoint stays fast.
 */
export type Heavy = {
  <T>(work: () => Promise<T>): Promise<T>
  /** How many wait now. */
  readonly depth: () => number
}

export function boundedWork(running: number, waiting: number, onRefusal: () => void): Heavy {
  let active = 0
  const line: (() => void)[] = []
  const heavy = async <T>(work: () => Promise<T>): Promise<T> => {
    if (active >= running) {
      if (line.length >= waiting) {
        onRefusal()
        throw tooBusy()
      }
      await new Promise<void>((resolve) => line.push(resolve))
    } else {
      active++
    }
    try {
      return await work()
    } finally {
      const next = line.shift()
      // Whoever is next takes over this place.
      if (next === undefined) active--
      else next()
    }
  }
  return Object.assign(heavy, { depth: () => line.length })
}

const tooBusy = () =>
  edge('service_unavailable', {
    message: 'Too many sign-ins at once; try again in a moment',
    headers: { 'retry-after': '1', 'x-retry-after': '1' },
  })
