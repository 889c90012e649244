import { Session } from 'node:inspector/promises'
import { setFlagsFromString } from 'node:v8'
import { memoryUsage } from '#kernel/memory-parts.ts'

const MIB = 2 ** 20

/**
 * Bounds the garbage in the heap: V8 collects the old generation when it has grown by this many percent, by default when it has doubled
 * or more. A pipeline of a million rows needed 218 MB more than the idle service before, and needs 120 MB more now.
 */
const HEAP_GROWTH = 40

export const boundGarbage = (): void => setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`)

/**
 * Forces a full garbage collection. Loading modules leaves 20 MB of garbage and an enlarged young generation. V8 returns both to the system
 * in a full collection, which an idle service would not trigger by itself.
 */
export async function returnMemory(): Promise<void> {
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
}

/** Time between two looks, milliseconds. */
const LOOK = 250
/** The event loop has time when less than this share of it is in use. */
const BUSY = 0.5
/** Longest wait for an event loop with time, milliseconds. */
const PATIENCE = 10_000
/** Less is not worth the pause, bytes. */
const GROWTH = 24 * MIB

/**
 * Returns freed memory to the system from now on. glibc's malloc keeps what is freed below a block that is still in use: after a load 55 of 264 MiB
 * (docs/decisions/0087). Returning it stops all allocations for about a millisecond for every 10 MiB.
 */
export async function keepReturningFreed(): Promise<void> {
  const returnFreed = await freedMemory()
  if (returnFreed === undefined) return
  let least = allocated() ?? Number.POSITIVE_INFINITY
  let last = performance.now()
  let used = performance.eventLoopUtilization()
  setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(used)
    used = performance.eventLoopUtilization()
    if (utilization > BUSY && performance.now() - last < PATIENCE) return
    const now = allocated()
    if (now === undefined) return
    least = Math.min(least, now)
    if (now - least < GROWTH) return
    returnFreed()
    least = allocated() ?? now
    last = performance.now()
  }, LOOK).unref()
}

/** Outside of V8's heap, with what is kept free. Undefined while the memory is. */
function allocated(): number | undefined {
  const usage = memoryUsage()
  return usage && usage.rss - usage.heapTotal
}

/** Undefined where malloc is not glibc's, and in a Node without `node:ffi`. */
async function freedMemory(): Promise<(() => void) | undefined> {
  try {
    const { dlopen } = await import('node:ffi')
    const { functions } = dlopen(null, { malloc_trim: { arguments: ['uint64'], return: 'int32' } })
    return () => void functions.malloc_trim(0n)
  } catch {
    return undefined
  }
}
