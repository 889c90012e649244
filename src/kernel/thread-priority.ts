import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'

/** Nice value: a 28th of the time of an event loop that wants all of it (sched(7)), and no less than that. */
export const LOW_PRIORITY = 15

/**
 * Lowers the priority of the thread that calls it, so that the event loop does not wait for the end of its time slice (3 ms). Only Linux
 * has priorities of threads; where there is no /proc nothing changes.
 */
export function lowerThreadPriority(): void {
  try {
    const id = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(id, LOW_PRIORITY)
  } catch {
    // The work is done all the same.
  }
}
