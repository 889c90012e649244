/** A 95 % interval and the median that it surrounds. */
export type Interval = { readonly low: number; readonly middle: number; readonly high: number }

const RESAMPLES = 2_000
const TAIL = 0.025

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** Linear between the two nearest values. NaN of an empty list. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right)
  const place = (sorted.length - 1) * share
  const [low = Number.NaN, high = Number.NaN] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]]
  return low + (high - low) * (place - Math.floor(place))
}

/** Ratios within a round remove the drift of the machine. Rounds that either side lacks are left out. */
export function ratios(ours: readonly number[], theirs: readonly number[]): readonly number[] {
  return ours
    .map((value, round) => value / (theirs[round] ?? Number.NaN))
    .filter((ratio) => Number.isFinite(ratio))
}

/** The median of the values, with the percentile bootstrap of it. The same seed gives the same interval. */
export function bootstrap(values: readonly number[], seed: number): Interval {
  const random = createRandom(seed)
  const medians = Array.from({ length: values.length > 0 ? RESAMPLES : 0 }, () =>
    median(values.map(() => values[Math.floor(random() * values.length)] ?? Number.NaN)),
  )
  return { low: quantile(medians, TAIL), middle: median(values), high: quantile(medians, 1 - TAIL) }
}

/** Mulberry32: 32 bits of state are enough to draw a few hundred thousand samples. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
