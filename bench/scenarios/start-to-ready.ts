import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'
import type { Scenario } from '../scenario.ts'
import type { Side, Work } from '../turns.ts'

const FIRST = 'first start, with a new database'
const WARM = 'later start'
const ABOUT = 'as `npm start`, with the embedded PostgreSQL'

/** From the command until the first request is answered 200. */
export const startToReady: Scenario = {
  title: 'start to ready',
  unit: 'seconds',
  target: { of: WARM, atMost: 1.2 },
  async open({ after }) {
    const home = await createTemporaryHome()
    after(home.remove)
    await secondsToReady(home.folder)
    const warm = () => secondsToReady(home.folder)
    const first = async () => {
      const fresh = await createTemporaryHome()
      try {
        return await secondsToReady(fresh.folder)
      } finally {
        await fresh.remove()
      }
    }
    const side = { about: ABOUT, check: async () => {} }
    return [
      { ...side, name: WARM, work: warm },
      { ...side, name: FIRST, work: first },
    ] satisfies readonly Side[]
  },
}

async function secondsToReady(folder: string): Promise<Work> {
  const began = performance.now()
  const program = await startProgram(folder)
  const { ok } = await fetch(`${program.url}/health/ready`)
  const seconds = (performance.now() - began) / 1_000
  await program.end('SIGTERM')
  return { done: ok ? 1 : 0, failed: ok ? 0 : 1, seconds, load: 0, value: seconds }
}
