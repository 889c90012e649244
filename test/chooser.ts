/** Choices that are the same for the same seed (mulberry32). */
export type Chooser = {
  below(count: number): number
  of<T>(list: readonly T[]): T
}

export function chooser(seed: number): Chooser {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    below: (count) => Math.floor(next() * count),
    of: <T>(list: readonly T[]) => list[Math.floor(next() * list.length)] as T, // never empty
  }
}
