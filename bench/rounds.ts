import { showProgress } from '#cli/progress.ts'
import { median } from './statistics.ts'
import { inTurns } from './turns.ts'

/** Runs one variant of the work once and returns its rate per second. */
export type Way = () => Promise<number>

/** Rates of each variant by round. */
export type Rates = ReadonlyMap<string, readonly number[]>

/**
 * Runs all variants in turn in each round, so that disturbances of the machine affect all of them. Each round begins with a different
 * variant. The first rounds do not count, because on a busy machine it takes seconds until the code is compiled.
 */
export async function interleaved(ways: Readonly<Record<string, Way>>, rounds: number): Promise<Rates> {
  const rates = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]))
  const progress = await showProgress((WARM_UP + rounds) * rates.size)
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const [name, way] of inTurns(Object.entries(ways), round)) {
      const rate = await way()
      if (round >= 0) rates.get(name)?.push(rate)
      progress.advance(1)
    }
  }
  progress.end()
  return rates
}

const WARM_UP = 3

/** Prints the rates, their spread, and their ratio to each of `against`: the median of the rounds' ratios. */
export function printRates(
  rates: Rates,
  { unit, against }: { unit: string; against: readonly string[] },
): void {
  const peers = against.filter((name) => rates.has(name))
  const head = ['', unit, 'from', 'to', ...peers.map((name) => `of ${name}`)]
  const rows = [...rates].map(([name, values]) => [
    name,
    ...[median(values), Math.min(...values), Math.max(...values)].map(amount),
    ...peers.map((peer) => ratioOf(rates, name, peer).toFixed(2)),
  ])
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)))
  for (const row of [head, ...rows]) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    console.log(`  ${cells.join('   ')}`)
  }
}

/** Prints a target, the measured ratio, and whether the target is met. */
export function printTarget(rates: Rates, name: string, against: string, atLeast: number): void {
  const ratio = ratioOf(rates, name, against)
  const verdict = `${ratio.toFixed(2)}, ${ratio >= atLeast ? 'met' : 'missed'}`
  const isKnown = rates.has(name) && rates.has(against)
  console.log(`  target: ${name} ≥ ${atLeast} of ${against}: ${isKnown ? verdict : 'not measured'}`)
}

/** Median of the ratios of each round. Comparing within a round removes the drift of the machine. */
export function ratioOf(rates: Rates, name: string, against: string): number {
  const others = rates.get(against) ?? []
  return median((rates.get(name) ?? []).map((rate, round) => rate / (others[round] ?? Number.NaN)))
}

const amount = (value: number): string => Math.round(value).toLocaleString('en')
