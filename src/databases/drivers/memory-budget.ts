/** Memory of one answer. False: so many bytes are not free; its reservation stays as it was. */
export type MemoryBudget = { reserve(bytes: number): boolean }

/** Memory that several answers share: so many bytes for all together, and so many for each. */
export function createMemoryBudgets(total: number, each: number): () => MemoryBudget {
  let left = total
  return () => {
    let reserved = 0
    return {
      reserve(bytes) {
        const more = bytes - reserved
        if (bytes > each || more > left) return false
        left -= more
        reserved = bytes
        return true
      },
    }
  }
}

/** For answers that are read to their end because their readers are slow: five of the largest at once (`limits.answer`). */
export const createReadAheadBudgets = (answerBytes: number): (() => MemoryBudget) =>
  createMemoryBudgets(5 * answerBytes, answerBytes)
