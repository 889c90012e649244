import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { Pace } from '#databases/drivers/postgres/protocol/pace.ts'

/** A connection of the pool that several reads use at the same time (`RowClient.follow`). */
export type Lane = { readonly client: RowClient; leave(): void }

/** How long a read may keep those behind it waiting, and for how long nothing is shared then. Milliseconds. */
const patience = 100
const pause = 5_000

/**
 * Reads by key share connections, one behind the other, as many as the server answers quickly (`Pace`): less work for both sides
 * than a connection for each. What holds up one (a table that is being altered, a value of many megabytes) holds up all behind
 * it, so those behind a slow one are sent to connections of their own. While somebody waits for a connection nobody joins one that
 * is in use, and those who wait to read get the next one together.
 * What is returned joins; undefined: nothing is shared now, and the pool is to be asked.
 */
export function sharedLanes(pool: Pool): () => Lane | Promise<Lane> | undefined {
  const lanes = new Set<SharedLane>()
  /** Its readers wait for a connection. */
  let next: NextLane | undefined
  /** As it was on the connection that was used last. */
  let pace = new Pace()
  let closedUntil = 0
  let watch: NodeJS.Timeout | undefined

  function join(): Lane | Promise<Lane> | undefined {
    if (!pool.mayWait() || performance.now() < closedUntil) return undefined
    const lane = pool.isWaitedFor() ? undefined : (lanes.values().find((one) => one.hasRoom()) ?? begin())
    if (lane !== undefined) return lane.join(1)
    return pool.mayOpen() ? undefined : joinNext()
  }

  function begin(): SharedLane | undefined {
    const client = pool.takeIdle()
    return client && laneOn(client)
  }

  function joinNext(): Promise<Lane> {
    const waiting = next !== undefined && next.users < pace.depth() ? next : waitForNext()
    waiting.users++
    return waiting.lane
  }

  function waitForNext(): NextLane {
    // In the same step nobody else can join who would not be counted.
    const leave = () => {
      if (next === waiting) next = undefined
    }
    const arrive = (client: RowClient) => {
      leave()
      return laneOn(client).join(waiting.users)
    }
    const fail = (error: unknown) => {
      leave()
      throw error
    }
    const waiting: NextLane = { users: 0, lane: pool.acquire().then(arrive, fail) }
    next = waiting
    return waiting
  }

  function laneOn(client: RowClient): SharedLane {
    const lane = new SharedLane(client, () => {
      pace = client.pace
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

type NextLane = { users: number; readonly lane: Promise<Lane> }

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

  join(users: number): this {
    this.#users += users
    return this
  }

  leave(): void {
    this.#users--
    if (this.#users === 0) this.#onEmpty()
  }
}
