import { ms, quantile, type Sample, type Send } from './measure.ts'
import { inTurns } from './turns.ts'

/** Requests to compare, with their expected status. */
export type Kinds = Readonly<Record<string, { readonly send: Send; readonly status: number }>>

/** Number of uncounted first rounds. */
const WARM_UP = 20

/** Measures the kinds in turns, so that disturbances of the machine affect all of them. */
export async function timed(kinds: Kinds, rounds: number): Promise<ReadonlyMap<string, readonly Sample[]>> {
  const samples = new Map(Object.keys(kinds).map((name): [string, Sample[]] => [name, []]))
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const [name, { send, status }] of inTurns(Object.entries(kinds), round)) {
      const sample = await send()
      if (sample.status !== status) throw new Error(`${name}: unexpected status ${sample.status}`)
      if (round >= 0) samples.get(name)?.push(sample)
    }
  }
  return samples
}

export function printTimes(samples: ReadonlyMap<string, readonly Sample[]>): void {
  for (const [name, taken] of samples) {
    const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => ms(quantile(taken, share)))
    console.log(`${name.padEnd(32)} median ${middle}, quartiles ${low} to ${high} (${taken.length})`)
  }
}

/**
 * Compares two sets of samples: the ratio of the medians, how often a sample of the first takes longer than one of the second (50 % if they
 * are indistinguishable), and how far that is from 50 % in standard deviations (Mann-Whitney). 95 % of equal sets are within 2.
 */
export function compared(first: readonly Sample[], second: readonly Sample[]): string {
  const wins = first.flatMap((a) => second.map((b) => (a.took > b.took ? 1 : a.took === b.took ? 0.5 : 0)))
  const share = wins.reduce((sum: number, one) => sum + one, 0) / wins.length
  const deviation = Math.sqrt((first.length + second.length + 1) / (12 * first.length * second.length))
  const medians = quantile(first, 0.5) / quantile(second, 0.5)
  return `ratio ${medians.toFixed(3)}, slower in ${(share * 100).toFixed(1)} %, ${((share - 0.5) / deviation).toFixed(1)} deviations`
}

/** Splits samples of one kind into two halves, whose comparison shows the effect of chance. */
export const halves = (samples: readonly Sample[]): readonly [readonly Sample[], readonly Sample[]] => [
  samples.filter((_, index) => index % 2 === 0),
  samples.filter((_, index) => index % 2 === 1),
]
