import { startLoader } from '../load/loader.ts'
import { cachedSession } from '../loads.ts'
import { passwordSignIns } from '../loads-of-passwords.ts'
import type { Scenario } from '../scenario.ts'
import { OURS } from '../sides.ts'
import type { Side, Work } from '../turns.ts'

const RATE = 300
const CALLERS = 200
/** Times the length of a turn, since a hundredth of fewer requests would be some of them. */
const LONGER = 10
/** While 200 callers arrive, the load process that measures is slow itself. */
const ARRIVAL = 2_000
const IDLE = 'idle'
const FLOODED = 'while 200 callers sign in'

/** The slowest hundredth of 300 requests a second to a cached session. */
export const getSessionInFlood: Scenario = {
  title: 'get-session while others sign in',
  unit: 'ms, p99',
  target: { of: FLOODED, against: IDLE, atMost: 4 },
  async open(bench) {
    const { service } = bench
    // Not the common one, which keeps the usual priority.
    const loader = startLoader()
    bench.after(loader.end)
    const isFirst = loader.goFirst()
    const session = await cachedSession(service)
    const signIns = await passwordSignIns(service.url, CALLERS)
    const flood = startLoader()
    bench.after(flood.end)
    const measure = async (seconds: number): Promise<Work> => {
      const result = await loader.perform({ load: session.load, seconds: LONGER * seconds, rate: RATE })
      const { done, failed, processor, latency } = result
      return { done, failed, seconds: result.seconds, load: processor, value: latency?.p99 ?? Number.NaN }
    }
    const flooded = async (seconds: number): Promise<Work> => {
      // Refusals (503 with Retry-After) are how the service bounds the flood, and no failures of get-session.
      const flooding = flood.perform({ load: signIns.load, seconds: LONGER * seconds + ARRIVAL / 1_000 })
      await new Promise((resolve) => setTimeout(resolve, ARRIVAL))
      const work = await measure(seconds)
      await flooding
      return work
    }
    const about = `${OURS}, ${isFirst ? 'the load that measures goes first' : 'without priority for the load that measures'}`
    const side = { pid: service.pid, about, check: session.check }
    return [
      { ...side, name: FLOODED, work: flooded },
      { ...side, name: IDLE, work: measure },
    ] satisfies readonly Side[]
  },
}
