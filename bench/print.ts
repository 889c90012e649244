import { partsOf } from './parts.ts'
import type { ScenarioResult } from './results.ts'
import { summaryOf, verdictOf } from './summary.ts'
import { printTable } from './table.ts'

/** Prints what was measured as soon as a scenario is done. */
export function printScenario(result: ScenarioResult, seed: number): void {
  console.log(`\n${result.title} · ${result.unit}`)
  const head = ['', 'median', 'from', 'to', 'ours to it', 'µs service', 'database', 'load', 'failed', 'void']
  const rows = summaryOf(result, seed).map((side) => [
    side.name,
    ...[side.value, side.from, side.to].map(amount),
    side.ratio
      ? `${side.ratio.middle.toFixed(2)} (${side.ratio.low.toFixed(2)}–${side.ratio.high.toFixed(2)})`
      : '',
    ...[side.service, side.database, side.load].map((value) => value.toFixed(1)),
    `${side.failed}`,
    `${side.voided}`,
  ])
  printTable([head, ...rows])
  for (const { name, latency } of result.sides)
    for (const { share, rate, p50, p99, lag } of latency)
      console.log(
        `  ${name} at ${share * 100} %, ${amount(rate)}/s: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, lag p99 ${lag.toFixed(2)} ms`,
      )
  for (const side of result.sides) {
    const parts = [...partsOf(side)].map(([name, value]) => `${name} ${amount(value)}`)
    if (parts.length > 0) console.log(`  ${side.name}, made of: ${parts.join(', ')}`)
  }
  const verdict = verdictOf(result, seed)
  if (verdict) {
    const { low, middle, high } = verdict.found
    const met =
      verdict.isMet === undefined ? 'the machine is too noisy to say' : verdict.isMet ? 'met' : 'missed'
    console.log(
      `  target ${verdict.says}: ${middle.toFixed(3)} (${low.toFixed(3)}–${high.toFixed(3)}), ${met}`,
    )
  }
  for (const [peer, why] of Object.entries(result.missing)) console.log(`  without ${peer}: ${why}`)
}

const amount = (value: number): string =>
  value < 100 ? value.toFixed(2) : Math.round(value).toLocaleString('en')
