import { fail } from '#gateway/errors.ts'
import { createPlaces, type Places } from '#kernel/places.ts'

/** Bounds the runs of the process. A client takes part in at most half of them, so that a slow one does not stop the others. */
export type RunPlaces = {
  /** Waits for a place for a run on these clients; the answer gives it back. */
  enter(clients: readonly string[]): Promise<() => void>
}

const WAITING = 100
const PATIENCE = 5_000

export function createRunPlaces(max: number): RunPlaces {
  const options = { max: WAITING, patience: PATIENCE, refusal: tooMany }
  const all = createPlaces(max, options)
  const byClient = new Map<string, Places>()

  /** The name may be that of no client, so it is forgotten after the run. */
  async function enterClient(client: string): Promise<() => void> {
    const places = byClient.get(client) ?? createPlaces(Math.ceil(max / 2), options)
    byClient.set(client, places)
    const leave = await places.enter()
    return () => {
      leave()
      if (places.stats().inside === 0) byClient.delete(client)
    }
  }

  return {
    async enter(clients) {
      const held: (() => void)[] = []
      const leave = () => {
        for (const give of held.splice(0)) give()
      }
      try {
        // In one order for all runs, or two of them could wait for each other.
        for (const client of [...new Set(clients)].sort()) held.push(await enterClient(client))
        held.push(await all.enter())
        return leave
      } catch (error) {
        leave()
        throw error
      }
    },
  }
}

const tooMany = () => fail('too_many_runs', { headers: { 'retry-after': '5' } })
