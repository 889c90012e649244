import { showProgress } from '#cli/progress.ts'

/** Measures one way of doing the work, once, and answers how much of it was done a second. */
export type Way = () => Promise<number>

/** What each way did in each round. */
export type Rates = ReadonlyMap<string, readonly number[]>

/**
 * All ways in turn, round after round, so that whatever else the machine does slows down all of them. Each round begins
 * with another way. The first ones do not count: on a busy machine code takes seconds to be compiled.
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

/** Each round begins with another one. */
export function inTurns<T>(list: readonly T[], round: number): readonly T[] {
  const first = ((round % list.length) + list.length) % list.length
  return [...list.slice(first), ...list.slice(0, first)]
}

/** Rates, their spread, and each as a share of those `against` which they are held: the median of the rounds' ratios. */
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

/** One line: what is asked for, what it is, and whether that is enough. */
export function printTarget(rates: Rates, name: string, against: string, atLeast: number): void {
  const ratio = ratioOf(rates, name, against)
  const verdict = `${ratio.toFixed(2)}, ${ratio >= atLeast ? 'met' : 'missed'}`
  const isKnown = rates.has(name) && rates.has(against)
  console.log(`  target: ${name} ≥ ${atLeast} of ${against}: ${isKnown ? verdict : 'not measured'}`)
}

/** Of two that ran one after the other, round by round: drift of the machine falls out. */
export function ratioOf(rates: Rates, name: string, against: string): number {
  const others = rates.get(against) ?? []
  return median((rates.get(name) ?? []).map((rate, round) => rate / (others[round] ?? Number.NaN)))
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2
}

const amount = (value: number): string => Math.round(value).toLocaleString('en')
