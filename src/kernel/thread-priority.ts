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

/** libuv's name of a thread of its pool. */
const POOL_THREAD = 'libuv-worker\n'

/** The same for the pool of Node, whose threads hash passwords, compress, and read files and names of hosts. */
export async function lowerPoolPriority(): Promise<void> {
  // Reading is itself a job of the pool, so its threads exist by then.
  const ids = await readdir('/proc/self/task').catch(() => [])
  await Promise.all(ids.map((id) => lowerIfInPool(id).catch(() => {})))
}

async function lowerIfInPool(id: string): Promise<void> {
  if ((await readFile(`/proc/self/task/${id}/comm`, 'utf8')) === POOL_THREAD)
    setPriority(Number(id), LOW_PRIORITY)
}
