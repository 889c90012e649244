import { fail } from '#gateway/errors.ts'
import { acquireAll, createSemaphores } from '#kernel/keyed-semaphore.ts'
import { createSemaphore } from '#kernel/semaphore.ts'

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
  const shares = createSemaphores()
  const shareOf = (client: string) => () =>
    shares.acquire(client, () => createSemaphore(Math.ceil(max / 2), options))
  return {
    // In one order for all runs, or two of them could wait for each other.
    acquire: (clients) => acquireAll([...[...new Set(clients)].sort().map(shareOf), () => all.acquire()]),
  }
}

const tooMany = () => fail('too_many_runs', { headers: { 'retry-after': '5' } })
