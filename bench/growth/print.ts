import { printTable } from '../table.ts'
import { cellsOf, headOf } from './cells.ts'
import type { Curve } from './results.ts'

/** A table for each thing that grows. */
export function printCurves(curves: readonly Curve[]): void {
  for (const [of, some] of Map.groupBy(curves, (curve) => curve.of)) {
    console.log(`\nProcessor µs a request, service + database, by ${of}`)
    printTable([headOf(some), ...some.map((curve) => cellsOf(curve, some))])
  }
}
