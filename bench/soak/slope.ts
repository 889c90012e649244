/** A point of a curve. */
export type Sample = { readonly seconds: number; readonly mib: number }

/** A straight line through samples: what it rises by in a minute, and the standard error of that. */
export type Slope = { readonly perMinute: number; readonly error: number }

/** By least squares. */
export function slopeOf(samples: readonly Sample[]): Slope {
  const times = samples.map(({ seconds }) => seconds / 60)
  const values = samples.map(({ mib }) => mib)
  const [time, value] = [mean(times), mean(values)]
  const spread = sum(times.map((at) => (at - time) ** 2))
  const perMinute = sum(times.map((at, index) => (at - time) * ((values[index] ?? 0) - value))) / spread
  const rest = times.map((at, index) => (values[index] ?? 0) - value - perMinute * (at - time))
  const variance = sum(rest.map((distance) => distance ** 2)) / (samples.length - 2)
  return { perMinute, error: Math.sqrt(variance / spread) }
}

export const secondHalf = (samples: readonly Sample[]): readonly Sample[] => {
  const end = samples.at(-1)?.seconds ?? 0
  return samples.filter(({ seconds }) => seconds >= end / 2)
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const mean = (values: readonly number[]): number => sum(values) / values.length
