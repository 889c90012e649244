import { edge } from './http/failures.ts'

/**
 * Runs work that keeps a processor busy: `running` at once, `waiting` in line, and past that 503. So a flood of
 * sign-ins takes the processors that it is given and every other endpoint stays fast.
 */
export type Heavy = {
  <T>(work: () => Promise<T>): Promise<T>
  /** Throws what the work would meet if there is no room now: before anything is looked up for it. */
  readonly expectRoom: () => void
  /** How many wait now. */
  readonly depth: () => number
}

export function boundedWork(running: number, waiting: number, onRefusal: () => void): Heavy {
  let active = 0
  const line: (() => void)[] = []
  const expectRoom = (): void => {
    if (active < running || line.length < waiting) return
    onRefusal()
    throw tooBusy()
  }
  const heavy = async <T>(work: () => Promise<T>): Promise<T> => {
    expectRoom()
    if (active >= running) {
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
  return Object.assign(heavy, { expectRoom, depth: () => line.length })
}

const tooBusy = () =>
  edge('service_unavailable', {
    message: 'Too many sign-ins at once; try again in a moment',
    headers: { 'retry-after': '1', 'x-retry-after': '1' },
  })
