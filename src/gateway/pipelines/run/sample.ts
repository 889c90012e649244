import type { Candidates } from './candidates.ts'

/** The first candidates of a run, for its answer. */
export type Sample = {
  add(candidates: Candidates): void
  texts(): readonly string[]
}

const ROWS = 1_000

/** At most 1,000 rows, and at most this many characters. */
export function createSample(characters: number): Sample {
  const texts: string[] = []
  let left = characters
  let isFull = false
  return {
    add(candidates) {
      if (isFull) return
      for (const text of candidates.texts()) {
        left -= text.length
        isFull = left < 0 || texts.length === ROWS
        if (isFull) return
        texts.push(text)
      }
    },
    texts: () => texts,
  }
}
