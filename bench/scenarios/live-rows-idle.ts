import { setTimeout as sleep } from 'node:timers/promises'
import { processorTime, proportionalMemory } from '../processor.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { OURS } from '../sides.ts'
import { holdStreams, liveSettings, makeLive, operatorKey } from '../streams.ts'
import type { Side, Work } from '../turns.ts'
import { addRoles } from './row-by-session.ts'

const STREAMS = 10_000
/** After the start, and after the streams have begun, a full collection runs. */
const QUIET = 5_000

/** Memory of a new process for each stream that only waits, in KiB. `parts`: processor µs that all of them use in a second. */
export const liveRowsIdle: Scenario = {
  title: `live rows, ${STREAMS.toLocaleString('en')} idle streams`,
  unit: 'KiB each',
  async open({ server }) {
    const work = async (): Promise<Work> => {
      const began = performance.now()
      await using cleanups = new AsyncDisposableStack()
      const own = (clean: () => Promise<void>) => cleanups.defer(clean)
      const service = await startService(server, liveSettings)
      cleanups.defer(service.stop)
      await addRoles({ server, service, after: own })
      const headers = await operatorKey(service)
      await makeLive(service, headers, 'idle', 'id int primary key, text text')
      await sleep(QUIET)
      const before = proportionalMemory(service.pid)
      const streams = holdStreams({ after: own })
      const body = JSON.stringify({ tables: [{ table_name: 'idle' }] })
      await streams.open('idle', {
        url: service.url,
        body,
        headers: Array.from({ length: STREAMS }, () => headers),
      })
      await sleep(QUIET)
      const parts = await processorOfIdling(service.pid, server.pid)
      const value = ((proportionalMemory(service.pid) - before) * 1_024) / STREAMS
      return { done: STREAMS, failed: 0, seconds: (performance.now() - began) / 1_000, load: 0, value, parts }
    }
    return [{ name: 'Gatehouse', about: OURS, check: async () => {}, work }] satisfies readonly Side[]
  },
}

async function processorOfIdling(
  service: number,
  database: number,
): Promise<Readonly<Record<string, number>>> {
  const [ofService, ofDatabase, began] = [processorTime(service), processorTime(database), performance.now()]
  await sleep(QUIET)
  const seconds = (performance.now() - began) / 1_000
  return {
    'µs a second, service': (processorTime(service) - ofService) / seconds,
    'µs a second, database': (processorTime(database) - ofDatabase) / seconds,
  }
}
