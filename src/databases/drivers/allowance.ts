/** Memory of one answer. False: it may not hold so many bytes; it holds as many as before. */
export type Allowance = { hold(bytes: number): boolean }

/** Memory that several answers share: so many bytes for all together, and so many for each. */
export function allowances(total: number, each: number): () => Allowance {
  let left = total
  return () => {
    let held = 0
    return {
      hold(bytes) {
        const more = bytes - held
        if (bytes > each || more > left) return false
        left -= more
        held = bytes
        return true
      },
    }
  }
}

/** For answers that are read to their end because their readers are slow: five of the largest at once (`limits.answer`). */
export const readAheadOf = (answerBytes: number): (() => Allowance) =>
  allowances(5 * answerBytes, answerBytes)
