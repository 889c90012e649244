/**
 * A mix of requests at 70 % of the maximum for ten minutes, with the memory of the service: `node bench/soak.ts [--minutes N] [--workers N]`.
 * Exits with 1 if a request or a webhook failed, or if the memory grew in the second half. A soak of at least ten minutes is a file in
 * bench/results, which `npm run bench -- report` puts on the page.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { withFixture } from './fixture.ts'
import type { Load, Result } from './load/load.ts'
import { type Loader, startLoader } from './load/loader.ts'
import { proportionalMemory } from './processor.ts'
import type { RunResults } from './results.ts'
import { type Mix, openMix, SETTINGS, toldIn } from './soak/mix.ts'
import { type Soak, writeSoak } from './soak/result.ts'
import { type Sample, secondHalf, slopeOf } from './soak/slope.ts'

const SEED = 20_261_128
const SHARE = 0.7
/** MiB a minute. */
const MAX_SLOPE = 1
/** Seconds flat out, in which V8 compiles; uncounted. */
const WARM_UP = 20
const RAMP = [8, 16, 32, 64]
/** Seconds of each step of the ramp. */
const STEP = 8
/** More than callers of the maximum, so that a request that is due seldom waits for a connection. */
const CONNECTIONS = 96
const EVERY = 2_000
/** Samples between two lines, which show that it is alive. */
const LINE = 15

const amount = (value: number): string => Math.round(value).toLocaleString('en')

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, workers: { type: 'string', default: '1' } },
})
const minutes = Number(values.minutes)

await withFixture(
  async (fixture) => {
    await using cleanups = new AsyncDisposableStack()
    const loader = startLoader()
    cleanups.defer(loader.end)
    const mix = await openMix(fixture, SEED)
    cleanups.defer(mix.close)
    const soak = await perform(mix, { loader, pid: fixture.pid })
    print(soak)
    console.log(await writeSoak({ ...soak, workers: Number(values.workers) }, fixture.describes))
    if (soak.failed > 0 || soak.slope.perMinute >= MAX_SLOPE) process.exitCode = 1
  },
  { ...SETTINGS, SERVICE_SERVER__WORKERS: values.workers },
)

type Parts = { readonly loader: Loader; readonly pid: number }

type Measured = Omit<Soak, 'workers' | keyof RunResults>

async function perform(mix: Mix, { loader, pid }: Parts): Promise<Measured> {
  const runs: Result[] = []
  const run = async (connections: number, seconds: number, rate?: number): Promise<Result> => {
    const load: Load = { ...mix.load, connections }
    const result = await loader.perform({ load, seconds, ...(rate !== undefined && { rate }) })
    runs.push(result)
    return result
  }
  await mix.check()
  await run(16, WARM_UP)
  const ramp: Soak['ramp'][number][] = []
  for (const connections of RAMP) {
    const { done, seconds } = await run(connections, STEP)
    ramp.push({ connections, rate: done / seconds })
    console.log(`${connections} connections: ${amount(done / seconds)} requests a second`)
  }
  const maximum = Math.max(...ramp.map(({ rate }) => rate))
  const rate = maximum * SHARE
  console.log(`${amount(rate)} a second for ${minutes} minutes`)
  const sampler = sampleMemory(pid)
  const { done, failed, kinds, failures, latency, lag } = await run(CONNECTIONS, minutes * 60, rate)
  const memory = sampler.end()
  await mix.check()
  const missing = await mix.undelivered(runs.reduce((sum, result) => sum + toldIn(result.kinds), 0))
  if (latency === undefined || lag === undefined) throw new Error('a run at a rate has times')
  return {
    ...{ minutes, seed: SEED, ramp, maximum, rate, kinds, latency, lag, memory },
    requests: done + failed,
    failed: failed + missing,
    failures: { ...failures, ...(missing > 0 && { 'webhook: not delivered': missing }) },
    slope: slopeOf(secondHalf(memory)),
  }
}

function sampleMemory(pid: number): { end(): readonly Sample[] } {
  const [samples, began]: [Sample[], number] = [[], performance.now()]
  let isOver = false
  const loop = async () => {
    while (!isOver) {
      const sample = { seconds: (performance.now() - began) / 1_000, mib: proportionalMemory(pid) }
      samples.push(sample)
      if (samples.length % LINE === 0) console.log(`  ${amount(sample.seconds)} s: ${amount(sample.mib)} MiB`)
      await sleep(EVERY)
    }
  }
  void loop()
  return {
    end() {
      isOver = true
      return samples
    },
  }
}

function print({ requests, failed, kinds, failures, latency, lag, memory, slope }: Measured): void {
  const half = secondHalf(memory).map(({ mib }) => mib)
  const { perMinute, error } = slope
  const verdict = (isKept: boolean) => (isKept ? 'kept' : 'MISSED')
  console.log(`\n${amount(requests)} requests, ${failed} failed: ${verdict(failed === 0)}`)
  for (const [kind, count] of Object.entries(kinds)) console.log(`  ${kind}: ${amount(count)}`)
  for (const [what, count] of Object.entries(failures)) console.log(`  FAILED ${what}: ${amount(count)}`)
  console.log(
    `latency p50 ${latency.p50.toFixed(1)} ms, p99 ${latency.p99.toFixed(1)} ms; load late by p99 ${lag.p99.toFixed(1)} ms`,
  )
  console.log(
    `memory of the second half ${amount(Math.min(...half))} to ${amount(Math.max(...half))} MiB, ${perMinute.toFixed(2)} ± ${error.toFixed(2)} MiB a minute: ${verdict(perMinute < MAX_SLOPE)}`,
  )
}
