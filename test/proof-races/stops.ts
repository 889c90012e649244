import type { Kernel } from '#kernel/kernel.ts'

/** The next call of a watched function. */
type Next = { readonly reached: Promise<void>; release(): void }

/** Blocks the next call of a function until it is released. Later calls pass. */
export function stopper() {
  let next: { reach: () => void; gate: Promise<void> } | undefined
  return {
    async pass(): Promise<void> {
      const stop = next
      next = undefined
      stop?.reach()
      await stop?.gate
    },
    stopNext(): Next {
      const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
      const { promise: gate, resolve: release } = Promise.withResolvers<void>()
      next = { reach, gate }
      return { reached, release }
    },
  }
}

/** Blocks at the work queues, where every hash is computed and verified. */
export function hashStopper(kernel: Kernel): ReturnType<typeof stopper> {
  const hashes = stopper()
  const { hashQueue, foreignHashQueue } = kernel
  const stopping = (line: Kernel['hashQueue']) =>
    Object.assign(
      async <T>(work: () => Promise<T>, weight?: number) => {
        await hashes.pass()
        return line(work, weight)
      },
      { expectRoom: line.expectRoom, depth: line.depth },
    )
  Object.assign(kernel, { hashQueue: stopping(hashQueue), foreignHashQueue: stopping(foreignHashQueue) })
  return hashes
}
