import type { NamedSoak } from '../soak/result.ts'
import { secondHalf } from '../soak/slope.ts'
import { amount } from './chart.ts'
import { measuredOf, table } from './markdown.ts'

/** The section of the page about the newest soak. */
export function soakSection({ file, soak }: NamedSoak): string {
  const {
    minutes,
    workers,
    maximum,
    rate,
    requests,
    failed,
    failures,
    kinds,
    latency,
    memory,
    slope,
    ...run
  } = soak
  const half = secondHalf(memory).map(({ mib }) => mib)
  const failure = Object.entries(failures).map(([what, count]) => `${count} × ${what}`)
  const rows = Object.entries(kinds).map(([kind, count]) => [kind, amount(count)])
  return [
    '## Mixed soak',
    `${measuredOf(run)}. ${minutes} minutes at 70 % of the maximum: ${amount(rate)} of ${amount(maximum)} requests a second, ${workers === 1 ? 'one process' : `${workers} workers`}. \`node bench/soak.ts\`; raw samples: [${file}](../${file}).`,
    [
      `- ${requests.toLocaleString('en')} requests, ${failed} failed${failure.length > 0 ? `: ${failure.join(', ')}` : ''}.`,
      `- Latency from the intended time of sending: p50 ${amount(latency.p50)} ms, p99 ${amount(latency.p99)} ms.`,
      `- Memory (Pss) in the second half: ${amount(Math.min(...half))} to ${amount(Math.max(...half))} MiB, with a slope of ${slope.perMinute.toFixed(2)} ± ${slope.error.toFixed(2)} MiB a minute by least squares (target: under 1).`,
    ].join('\n'),
    table(['requests', 'answered'], rows),
  ].join('\n\n')
}
