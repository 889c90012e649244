import { fail } from '#gateway/errors.ts'
import { createSemaphore, type Semaphore } from '#kernel/semaphore.ts'

/** Bounds the runs of the process. A client takes part in at most half of them, so that a slow one does not stop the others. */
type RunLimit = {
  /** Waits for the turn of a run on these clients; the answer ends it. */
  acquire(clients: readonly string[]): Promise<() => void>
}

const WAITING = 100
const PATIENCE = 5_000

/** `refusal` makes the failure of a run that has waited too long. */
export function createRunLimit(max: number, refusal = tooMany): RunLimit {
  const options = { max: WAITING, patience: PATIENCE, refusal }
  const all = createSemaphore(max, options)
  const byClient = new Map<string, Semaphore>()

  /** The name may be that of no client, so it is forgotten after the run. */
  async function acquireClient(client: string): Promise<() => void> {
    const share = byClient.get(client) ?? createSemaphore(Math.ceil(max / 2), options)
    byClient.set(client, share)
    const release = await share.acquire()
    return () => {
      release()
      if (share.stats().active === 0) byClient.delete(client)
    }
  }

  return {
    async acquire(clients) {
      const releases: (() => void)[] = []
      const release = () => {
        for (const releaseOne of releases.splice(0)) releaseOne()
      }
      try {
        // In one order for all runs, or two of them could wait for each other.
        for (const client of [...new Set(clients)].sort()) releases.push(await acquireClient(client))
        releases.push(await all.acquire())
        return release
      } catch (error) {
        release()
        throw error
      }
    },
  }
}

const tooMany = () => fail('too_many_runs', { headers: { 'retry-after': '5' } })
