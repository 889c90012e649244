import { ms, quantile, type Sample, type Send } from './measure.ts'
import { inTurns } from './rounds.ts'

/** What is sent in turns, and the status that it is answered with. */
export type Kinds = Readonly<Record<string, { readonly send: Send; readonly status: number }>>

/** The first rounds warm everything up. */
const WARM_UP = 20

/** One after another in turns, so that whatever disturbs one disturbs all. */
export async function timed(kinds: Kinds, rounds: number): Promise<ReadonlyMap<string, readonly Sample[]>> {
  const samples = new Map(Object.keys(kinds).map((name): [string, Sample[]] => [name, []]))
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const [name, { send, status }] of inTurns(Object.entries(kinds), round)) {
      const sample = await send()
      if (sample.status !== status) throw new Error(`${name}: answered ${sample.status}`)
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
 * Of the medians, how often one of the first takes longer than one of the second (50 % cannot be told apart), and how far
 * that is from 50 % in standard deviations (Mann and Whitney): of equal ones 19 of 20 are within 2.
 */
export function compared(first: readonly Sample[], second: readonly Sample[]): string {
  const wins = first.flatMap((a) => second.map((b) => (a.took > b.took ? 1 : a.took === b.took ? 0.5 : 0)))
  const share = wins.reduce((sum: number, one) => sum + one, 0) / wins.length
  const deviation = Math.sqrt((first.length + second.length + 1) / (12 * first.length * second.length))
  const medians = quantile(first, 0.5) / quantile(second, 0.5)
  return `${medians.toFixed(3)}, slower in ${(share * 100).toFixed(1)} %, ${((share - 0.5) / deviation).toFixed(1)} deviations`
}

/** Every other one, and the rest: of one kind they show what chance does. */
export const halves = (samples: readonly Sample[]): readonly [readonly Sample[], readonly Sample[]] => [
  samples.filter((_, index) => index % 2 === 0),
  samples.filter((_, index) => index % 2 === 1),
]
