/**
 * What the processor time of one request is for: µs of each step, from a profile of the service under load. `node bench/steps.ts`, or only
 * some requests with `--request NAME …`, or another state of the code with `--of COMMIT`.
 */
import { parseArgs } from 'node:util'
import { checkOut, commitOf } from './brake/checkout.ts'
import { startLoader } from './load/loader.ts'
import { type CheckedLoad, cachedSession, firstRows, rowByGet, rowByPost } from './loads.ts'
import { processorTime } from './processor.ts'
import type { Bench } from './scenario.ts'
import { securedClient, securedRow } from './scenarios/row-by-session.ts'
import { startServerWithoutDisk } from './server.ts'
import { startService } from './service.ts'
import { PROFILED, type Profile, startProfile } from './steps/profile.ts'
import { stepsOf } from './steps/steps.ts'
import { printTable } from './table.ts'

type Request = (opened: Pick<Bench, 'server' | 'service' | 'after'>) => CheckedLoad | Promise<CheckedLoad>

const REQUESTS: Readonly<Record<string, Request>> = {
  'get-session': ({ service }) => cachedSession(service),
  'POST, row by key': ({ service }) => rowByPost(service),
  'GET, row by key': ({ service }) => rowByGet(service),
  'POST, row by key, by session': securedRow,
  '100 rows': ({ service }) => firstRows(service, 100),
  '1,000 rows': ({ service }) => firstRows(service, 1_000),
}
/** V8 compiles for some ten thousand requests. */
const WARM_UP = 6
const SECONDS = 4

const { values } = parseArgs({
  options: {
    request: { type: 'string', multiple: true, default: Object.keys(REQUESTS) },
    of: { type: 'string' },
  },
})
const commit = values.of === undefined ? undefined : await commitOf(values.of)
const checkout = commit === undefined ? undefined : await checkOut(commit)
const server = await startServerWithoutDisk()
const loader = startLoader()
try {
  for (const name of values.request) {
    const open = REQUESTS[name]
    if (open === undefined) throw new Error(`No request is called ${name}`)
    await using cleanups = new AsyncDisposableStack()
    const settings = (url: string) => ({ ...PROFILED, ...securedClient(url) })
    const service = await startService(server, settings, checkout?.root)
    cleanups.defer(service.stop)
    const load = await open({ server, service, after: (clean) => cleanups.defer(clean) })
    await load.check()
    await show(name, service, load)
  }
} finally {
  await loader.end()
  await server.stop()
  await checkout?.remove()
}

async function show(name: string, service: { readonly pid: number }, { load }: CheckedLoad): Promise<void> {
  await loader.perform({ load, seconds: WARM_UP })
  const before = [service.pid, server.pid].map(processorTime)
  const { done, failed } = await loader.perform({ load, seconds: SECONDS })
  if (failed > 0) throw new Error(`${failed} requests failed`)
  const [ofService = 0, ofDatabase = 0] = [service.pid, server.pid].map(
    (pid, index) => (processorTime(pid) - (before[index] ?? 0)) / done,
  )
  const profile = await profileOf(() => loader.perform({ load, seconds: SECONDS }))
  const steps = stepsOf(profile)
  const all = steps.reduce((sum, { time }) => sum + time, 0)
  const rows = steps.map(({ step, time, busiest }) => [step, microseconds((time / all) * ofService), busiest])
  console.log(`\n${name}`)
  printTable([
    ['step', 'µs', 'most of it'],
    ...rows,
    ['service', microseconds(ofService), ''],
    ['database', microseconds(ofDatabase), ''],
  ])
}

async function profileOf(work: () => Promise<unknown>): Promise<Profile> {
  const end = await startProfile()
  await work()
  return end()
}

function microseconds(time: number): string {
  return time.toFixed(1)
}
