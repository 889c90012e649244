import { Session } from 'node:inspector/promises'
import { setFlagsFromString } from 'node:v8'

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
