import { setImmediate } from 'node:timers/promises'

/** How long a piece of work may keep the event loop before other work has its turn, milliseconds. */
const LENGTH = 10

export type TimeSlice = {
  readonly isOver: () => boolean
  /** Lets other work run, and begins the next slice. */
  next(): Promise<void>
}

/** For long work: `if (slice.isOver()) await slice.next()` in its loop. */
export function startTimeSlice(): TimeSlice {
  let began = performance.now()
  return {
    isOver: () => performance.now() - began > LENGTH,
    async next() {
      await setImmediate()
      began = performance.now()
    },
  }
}
