import { amount } from '../report/chart.ts'
import { type Curve, FLAT, ratioOf } from './results.ts'

const sizesOf = (curves: readonly Curve[]): readonly number[] =>
  [...new Set(curves.flatMap(({ points }) => points.map(({ size }) => size)))].sort(
    (one, other) => one - other,
  )

const short = (size: number): string => size.toLocaleString('en')

export const headOf = (curves: readonly Curve[]): readonly string[] => [
  '',
  ...sizesOf(curves).map(short),
  'largest to',
  `flat: at most ${FLAT}`,
  'failed of',
]

/** The cells of a curve in the table of those that grow with it. */
export function cellsOf(curve: Curve, beside: readonly Curve[]): readonly string[] {
  const { title, points, from, compared } = curve
  const costs = sizesOf(beside).map((size) => {
    const point = points.find((one) => one.size === size)
    return point === undefined ? '' : `${amount(point.service)} + ${amount(point.database)}`
  })
  const ratio = ratioOf(curve)
  const failed = points.reduce((sum, point) => sum + point.failed, 0)
  const all = points.reduce((sum, point) => sum + point.done, failed)
  const against = `${short(from)}: ${ratio.toFixed(2)}${compared === 'database' ? ' (database)' : ''}`
  return [title, ...costs, against, ratio <= FLAT ? 'yes' : 'no', `${failed} of ${all}`]
}
