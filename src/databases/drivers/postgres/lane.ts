import type { RowClient } from '#databases/drivers/postgres/connection.ts'
import type { Pool } from '#databases/drivers/postgres/pool.ts'

/** A connection of the pool that several reads use at the same time (`RowClient.follow`). */
export type Lane = { readonly client: RowClient; leave(): void }

/** How long a read may keep those behind it waiting, and for how long nothing is shared then. Milliseconds. */
const patience = 100
const pause = 5_000

/**
 * Reads by key share connections, one behind the other, as many as the server answers quickly (`Pace`): less work for both sides
 * than a connection for each. What holds up one (a table that is being altered, a value of many megabytes) holds up all behind
 * it, so those behind a slow one are sent to connections of their own. Nobody joins while somebody waits for a connection.
 * What is returned joins; undefined: there is no room, and the pool is to be asked.
 */
export function sharedLanes(pool: Pool): () => Lane | undefined {
  const lanes = new Set<SharedLane>()
  let closedUntil = 0
  let watch: NodeJS.Timeout | undefined

  function join(): Lane | undefined {
    if (!pool.mayShare() || performance.now() < closedUntil) return undefined
    const lane = lanes.values().find((one) => one.hasRoom()) ?? begin()
    lane?.join()
    return lane
  }

  function begin(): SharedLane | undefined {
    const client = pool.takeIdle()
    if (client === undefined) return undefined
    const lane = new SharedLane(client, () => {
      lanes.delete(lane)
      pool.release(client)
    })
    lanes.add(lane)
    // After what has arrived meanwhile has been read: that the process itself was busy is nobody's fault here.
    watch ??= setInterval(() => setImmediate(look), patience / 2).unref()
    return lane
  }

  function look(): void {
    for (const { client } of lanes) if (client.unburden(patience)) closedUntil = performance.now() + pause
    if (lanes.size > 0) return
    clearInterval(watch)
    watch = undefined
  }

  return join
}

class SharedLane implements Lane {
  readonly client: RowClient
  readonly #onEmpty: () => void
  #users = 0

  constructor(client: RowClient, onEmpty: () => void) {
    this.client = client
    this.#onEmpty = onEmpty
  }

  hasRoom(): boolean {
    return this.#users < this.client.pace.depth() && this.client.takesMore()
  }

  join(): void {
    this.#users++
  }

  leave(): void {
    this.#users--
    if (this.#users === 0) this.#onEmpty()
  }
}
