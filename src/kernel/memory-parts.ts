import { readFileSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'

/** Parts of the resident memory of a process, in bytes. Together they are all of it. */
type MemoryParts = {
  /** Objects and compiled JavaScript, with garbage that has not been collected yet. */
  readonly heap_used: number
  /** Pages that the heap holds free. */
  readonly heap_free: number
  /** Buffers and the like, which objects of the heap hold outside of it. */
  readonly external: number
  /** Allocations of libraries, stacks of threads, and what the allocator keeps of memory that was freed. */
  readonly native: number
  /** Pages of the program and its libraries, most of which other processes share. */
  readonly files: number
}

/** Undefined while the memory is. */
export function memoryParts(): MemoryParts | undefined {
  const usage = memoryUsage()
  if (usage === undefined) return undefined
  const { external, rss } = usage
  const { used_heap_size: heap_used, total_physical_size } = getHeapStatistics()
  const heap_free = Math.max(0, total_physical_size - heap_used)
  const files = fileBytes()
  return {
    heap_used,
    heap_free,
    external,
    native: Math.max(0, rss - files - heap_used - heap_free - external),
    files,
  }
}

/** Undefined while the process may open no more files: the system tells its memory by one. */
export function memoryUsage(): NodeJS.MemoryUsage | undefined {
  try {
    return process.memoryUsage()
  } catch {
    return undefined
  }
}

/** 0 where the system does not tell, so that they are a part of `native`. */
function fileBytes(): number {
  try {
    const status = readFileSync('/proc/self/status', 'utf8')
    return [...status.matchAll(/^Rss(?:File|Shmem):\s+(\d+) kB/gm)].reduce(
      (sum, [, kilobytes]) => sum + Number(kilobytes) * 1_024,
      0,
    )
  } catch {
    return 0
  }
}
