/**
 * What the processor time of one request is for: µs of each step, from a profile of the service under load. `node bench/steps.ts`, or only
 * some requests with `--request NAME …`, or another state of the code with `--of COMMIT`.
 */
import { parseArgs } from 'node:util'
import { checkOut, commitOf } from './brake/checkout.ts'
import { startLoader } from './load/loader.ts'
import { type CheckedLoad, firstRows, rowByGet, rowByPost } from './loads.ts'
import { processorTime } from './processor.ts'
import { startServerWithoutDisk } from './server.ts'
import { type Service, startService } from './service.ts'
import { PROFILED, type Profile, startProfile } from './steps/profile.ts'
import { stepsOf } from './steps/steps.ts'
import { printTable } from './table.ts'

const REQUESTS: Readonly<Record<string, (service: Service) => CheckedLoad>> = {
  'POST, row by key': rowByPost,
  'GET, row by key': rowByGet,
  '100 rows': (service) => firstRows(service, 100),
  '1,000 rows': (service) => firstRows(service, 1_000),
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
    const service = await startService(server, () => PROFILED, checkout?.root)
    try {
      const load = REQUESTS[name]?.(service)
      if (load === undefined) throw new Error(`No request is called ${name}`)
      await load.check()
      await show(name, service, load)
    } finally {
      await service.stop()
    }
  }
} finally {
  await loader.end()
  await server.stop()
  await checkout?.remove()
}

async function show(name: string, service: Service, { load }: CheckedLoad): Promise<void> {
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
