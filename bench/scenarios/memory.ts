import { setTimeout as sleep } from 'node:timers/promises'
import { HEADER } from '#kernel/http/header-names.ts'
import { type CheckedLoad, cachedSession, firstRows, insertRow, rowByPost } from '../loads.ts'
import { passwordSignIns } from '../loads-of-passwords.ts'
import { residentMemory } from '../processor.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { OURS } from '../sides.ts'
import type { Side, Work } from '../turns.ts'

const IDLE = 'idle'
const SOAKED = 'after the soak'
/** After the start a full collection runs. */
const QUIET = 3_000
/** Turns of each kind. */
const TURNS = 4

/** Resident memory of a new process each time: idle, and after some turns of each kind of request. */
export const memory: Scenario = {
  title: 'memory',
  unit: 'MiB',
  target: { of: SOAKED, atMost: 230 },
  async open(bench) {
    const measure = async (use: (bench: Bench) => Promise<Counts>): Promise<Work> => {
      const began = performance.now()
      const service = await startService(bench.server)
      try {
        await sleep(QUIET)
        const counts = await use({ ...bench, service })
        const value = residentMemory(service.pid)
        const seconds = (performance.now() - began) / 1_000
        return { ...counts, seconds, load: 0, value, parts: await partsOf(service) }
      } finally {
        await service.stop()
      }
    }
    const side = { about: OURS, check: async () => {} }
    return [
      { ...side, name: SOAKED, work: (seconds) => measure((bench) => soak(bench, seconds)) },
      { ...side, name: IDLE, work: () => measure(async () => ({ done: 1, failed: 0 })) },
    ] satisfies readonly Side[]
  },
}

/** In MiB, as the service tells itself. */
async function partsOf({ url, adminKey }: Service): Promise<Readonly<Record<string, number>>> {
  const answer = await fetch(`${url}/metrics`, { headers: { [HEADER.adminKey]: adminKey } })
  const lines = (await answer.text()).matchAll(/^gatehouse_memory_bytes\{part="(\w+)"\} (\d+)/gm)
  return Object.fromEntries([...lines].map(([, part = '', bytes]) => [part, Number(bytes) / 2 ** 20]))
}

type Counts = Pick<Work, 'done' | 'failed'>

async function soak({ service, loader }: Bench, seconds: number): Promise<Counts> {
  const loads: readonly CheckedLoad[] = [
    await cachedSession(service),
    rowByPost(service),
    firstRows(service, 1_000),
    await insertRow(service),
    await passwordSignIns(service.url),
  ]
  let [done, failed] = [0, 0]
  for (let turn = 0; turn < TURNS; turn++) {
    for (const { load } of loads) {
      const result = await loader.perform({ load, seconds: seconds / 2 })
      done += result.done
      failed += result.failed
    }
  }
  return { done, failed }
}
