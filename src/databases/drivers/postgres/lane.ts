import type { RowClient } from '#databases/drivers/postgres/connection.ts'
import type { Pool } from '#databases/drivers/postgres/pool.ts'

/** A connection of the pool that several reads use at the same time (`RowClient.follow`). */
export type Lane = { readonly client: Promise<RowClient>; leave(): void }

/** Reads on the lane. What comes above takes its turn with all others, whose number has a limit. */
const crowd = 64
/** How long a read may keep those behind it waiting, and for how long there is no lane then. Milliseconds. */
const patience = 100
const pause = 5_000

/**
 * Reads by key share a connection, one behind the other: less work for both sides than a connection for each, and this process is
 * busy long before one backend is. What holds up one (a table that is being altered, a value of many megabytes) holds up all
 * behind it. So those behind a slow one are sent to connections of their own, and nobody joins while somebody waits for a connection.
 * What is returned joins; undefined: there is no room, and the pool is to be asked.
 */
export function sharedLane(pool: Pool): () => Lane | undefined {
  let lane: SharedLane | undefined
  let closedUntil = 0
  let watch: NodeJS.Timeout | undefined

  function join(): Lane | undefined {
    if (pool.stats().waiting > 0 || performance.now() < closedUntil) return undefined
    if (lane === undefined || !lane.isOpen()) lane = begin()
    if (lane.users >= crowd) return undefined
    lane.users++
    return lane
  }

  function begin(): SharedLane {
    // After what has arrived meanwhile has been read: that the process itself was busy is nobody's fault here.
    watch ??= setInterval(() => setImmediate(look), patience / 2).unref()
    return new SharedLane(pool)
  }

  function look(): void {
    if (lane?.unburden()) closedUntil = performance.now() + pause
    if (lane?.isOpen()) return
    clearInterval(watch)
    watch = undefined
  }

  return join
}

class SharedLane implements Lane {
  users = 0
  readonly client: Promise<RowClient>
  #connected: RowClient | undefined
  #isLeft = false
  readonly #pool: Pool

  constructor(pool: Pool) {
    this.#pool = pool
    this.client = this.#connect()
  }

  async #connect(): Promise<RowClient> {
    this.#connected = await this.#pool.acquire()
    return this.#connected
  }

  /** Not given back yet, and not known to be of no use. */
  isOpen(): boolean {
    return !this.#isLeft && this.#connected?.takesMore() !== false
  }

  unburden(): boolean {
    return this.#connected?.unburden(patience) ?? false
  }

  leave(): void {
    if (--this.users > 0) return
    this.#isLeft = true
    if (this.#connected !== undefined) this.#pool.release(this.#connected)
  }
}
