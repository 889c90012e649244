import { readlinkSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
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

/** Nice value: a ninth of that time. The event loop waits for these threads when it collects garbage with them. */
export const GARBAGE_PRIORITY = 10

/** By the names that libuv and Node give their threads: those that hash passwords, compress, and read files and names of hosts, and those of V8. */
const PRIORITIES: Readonly<Record<string, number>> = {
  'libuv-worker\n': LOW_PRIORITY,
  'node-V8Worker\n': GARBAGE_PRIORITY,
}

/** The same for the pools of Node and of V8, which marks garbage for some 50 ms on all processors at a time. */
export async function lowerPoolPriorities(): Promise<void> {
  // Reading is itself a job of Node's pool, so its threads exist by then.
  const ids = await readdir('/proc/self/task').catch(() => [])
  await Promise.all(ids.map((id) => lowerIfInPool(id).catch(() => {})))
}

async function lowerIfInPool(id: string): Promise<void> {
  const priority = PRIORITIES[await readFile(`/proc/self/task/${id}/comm`, 'utf8')]
  if (priority !== undefined) setPriority(Number(id), priority)
}
