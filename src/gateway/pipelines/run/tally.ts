import type { Batch, Candidates } from './candidates.ts'

/** The rows that a run has read so far, and those that it has made of them. */
export type Tally = {
  add(batch: Batch): void
  /** Whether the sample takes more texts. */
  wantsTexts(): boolean
  /** Rows of the source. */
  fetched(): number
  candidates(): number
  /** The first candidates, as JSON texts. */
  sample(): readonly string[]
}

/** Candidates of a sample. */
const SAMPLE = 1_000

/** `characters` is the most that the sample has. */
export function createTally(characters: number): Tally {
  let [fetched, candidates] = [0, 0]
  const texts: string[] = []
  let left = characters
  let isFull = false

  function addTexts(batch: Candidates): void {
    if (isFull) return
    for (const text of batch.texts()) {
      left -= text.length
      isFull = left < 0 || texts.length === SAMPLE
      if (isFull) return
      texts.push(text)
    }
  }

  return {
    add(batch) {
      fetched += batch.fetched
      candidates += batch.rows.length
      addTexts(batch)
    },
    wantsTexts: () => !isFull,
    fetched: () => fetched,
    candidates: () => candidates,
    sample: () => texts,
  }
}
