/** Memory of one answer. `reserve` sets the reserved bytes; false when the budget is exceeded, and the reservation stays as it was. */
export type MemoryBudget = { reserve(bytes: number): boolean }

/** Memory shared by several answers: `total` bytes together, at most `each` bytes for one. */
function createMemoryBudgets(total: number, each: number): () => MemoryBudget {
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

/** Memory for answers that are read ahead of slow readers: five of the largest size (`limits.answer`). */
export const createReadAheadBudgets = (answerBytes: number): (() => MemoryBudget) =>
  createMemoryBudgets(5 * answerBytes, answerBytes)
