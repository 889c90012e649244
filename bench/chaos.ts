/**
 * Injects a fault every 20 s under a mixed load on two workers, whose database is behind a proxy, and checks the service's guarantees.
 * Exits with 1 if one is violated. `node bench/chaos.ts [SECONDS] [FAULT …]`; default: 600 seconds, all faults in turn.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { FAULTS, type Fault } from './chaos/faults.ts'
import { createFixture, type Fixture } from './chaos/fixture.ts'
import { KINDS, type Load, startLoad } from './chaos/load.ts'
import {
  type Memory,
  noMailLost,
  noUnexpectedExit,
  noWriteLost,
  onlyExpectedStatuses,
  type Past,
  recovered,
  recoveries,
  stableMemory,
  type Verdict,
} from './chaos/promises.ts'

const EVERY = 20_000
/** Time with load before the first fault, in milliseconds. */
const WARM_UP = 5_000
/** `limits.shutdown` with some tolerance, in milliseconds. */
const SHUTDOWN = 30_000

const [seconds = '600', ...named] = process.argv.slice(2)
const faults = FAULTS.filter(({ name }) => named.length === 0 || named.includes(name))
if (faults.length === 0)
  throw new Error(`Unknown fault. Valid faults: ${FAULTS.map(({ name }) => name).join(', ')}`)

async function run(fixture: Fixture, time: number): Promise<readonly Verdict[]> {
  const load = await startLoad(fixture)
  const memory: { at: number; megabytes: number }[] = []
  const look = setInterval(
    async () => memory.push({ at: performance.now(), megabytes: await megabytesOf(fixture) }),
    5_000,
  )
  await sleep(WARM_UP)
  const past = await injectFaults(fixture, performance.now() + time)
  clearInterval(look)
  await load.stop()
  print(past, load, memory)
  return [
    await noWriteLost(fixture, load.written),
    await noMailLost(fixture, load.written),
    await noUnexpectedExit(fixture, past),
    recovered(past, load.samples),
    onlyExpectedStatuses(load.samples),
    stableMemory(memory),
    await exitsOnSigterm(fixture),
  ]
}

/** Injects one fault every 20 s, in turn. */
async function injectFaults(fixture: Fixture, until: number): Promise<readonly Past[]> {
  const possible = faults.filter(({ name, unlessPossible }) => {
    const why = unlessPossible?.(fixture)
    if (why !== undefined) console.log(`skipping ${name}: ${why}`)
    return why === undefined
  })
  const past: Past[] = []
  for (let turn = 0; performance.now() < until; turn++) {
    const began = performance.now()
    const { name, run, workers = 0 } = possible[turn % possible.length] as Fault // the list is not empty
    await run(fixture)
    past.push({ name, began, ended: performance.now(), workers })
    await sleep(Math.max(EVERY / 2, began + EVERY - performance.now()))
  }
  return past
}

async function exitsOnSigterm({ service: { child } }: Fixture): Promise<Verdict> {
  if (child.exitCode !== null || child.signalCode !== null)
    return { says: 'the service exits on SIGTERM: it had exited before', isKept: false }
  const began = performance.now()
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await Promise.race([exited, sleep(SHUTDOWN, undefined, { ref: false })])
  const took = ((performance.now() - began) / 1_000).toFixed(1)
  return {
    says: `the service exits on SIGTERM: code ${child.exitCode} after ${took} s`,
    isKept: child.exitCode === 0,
  }
}

/** Resident memory of all processes of the service, in MB. */
async function megabytesOf({ service }: Fixture): Promise<number> {
  const pids = [service.child.pid, ...(await service.workers())].join(',')
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', pids]).catch(() => ({ stdout: '' }))
  return (
    stdout
      .trim()
      .split('\n')
      .reduce((sum, line) => sum + Number(line), 0) / 1024
  )
}

function print(past: readonly Past[], { samples }: Load, memory: Memory): void {
  const head = ['', ...KINDS]
  const next = [...recoveries(past, samples)].map(([name, kinds]) => [
    `${name} (${past.filter((fault) => fault.name === name).length})`,
    ...KINDS.map((kind) => ((kinds.get(kind) ?? 0) / 1_000).toFixed(2)),
  ])
  console.log('seconds from the end of a fault to the next 200, maximum by kind of request:')
  printTable([head, ...next])
  const statuses = [...new Set(samples.map(({ status }) => status))].sort((left, right) => left - right)
  const counted = statuses.map((status) => [
    NAMES[status] ?? `${status}`,
    ...KINDS.map(
      (kind) => `${samples.filter((sample) => sample.kind === kind && sample.status === status).length}`,
    ),
  ])
  console.log('responses:')
  const slowest = KINDS.map((kind) =>
    Math.max(0, ...samples.filter((sample) => sample.kind === kind).map(({ began, ended }) => ended - began)),
  )
  printTable([head, ...counted, ['longest, s', ...slowest.map((took) => (took / 1_000).toFixed(1))]])
  console.log(`memory, MB: ${memory.map(({ megabytes }) => megabytes.toFixed(0)).join(' ')}`)
}

const NAMES: Readonly<Record<number, string>> = { 0: 'aborted', [-1]: 'timeout' }

function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const row of rows) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
    )
    console.log(`  ${cells.join('   ')}`)
  }
}

/** Errors in the log, without failed requests and jobs. */
function worstOf(log: string): string {
  const isWorse = (line: string) =>
    line.includes('"level":"error"') && !/"event":"(?:request_failed|jobs_error)"/.test(line)
  return log
    .split('\n')
    .filter(isWorse)
    .slice(-20)
    .map((line) => line.slice(0, 500))
    .join('\n')
}

const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => reject(new Error('interrupted')))
})
// The rejection may come before anything awaits it.
interrupted.catch(() => {})

const fixture = await createFixture()
try {
  const verdicts = await Promise.race([run(fixture, Number(seconds) * 1_000), interrupted])
  for (const { says, isKept } of verdicts) console.log(`${isKept ? 'ok      ' : 'VIOLATED'}  ${says}`)
  if (!verdicts.every(({ isKept }) => isKept)) {
    process.exitCode = 1
    console.log(await fixture.service.log().then(worstOf))
  }
} catch (error) {
  process.exitCode = 1
  console.error(error)
} finally {
  await fixture.close()
  // The load may have pending requests.
  process.exit()
}
