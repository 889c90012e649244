import type { RowClient } from '#databases/drivers/postgres/connection.ts'
import type { Pool } from '#databases/drivers/postgres/pool.ts'

/** A connection of the pool that several reads use at the same time (`RowClient.follow`). */
export type Lane = { readonly client: Promise<RowClient>; leave(): void }

export type Lanes = {
  /** Undefined: there is no room, and the pool is to be asked. */
  join(): Lane | undefined
}

/** Of a pool's connections: this process is busy long before a server has enough to do with two. */
const most = 2
/** Reads on one lane. What comes above takes its turn with all others, whose number has a limit. */
const crowd = 32
/** How long a read may keep those behind it waiting, and for how long there are no lanes then. Milliseconds. */
const patience = 100
const pause = 5_000

/**
 * Reads by key share connections, one behind the other: less work for both sides than a connection for each. What holds up one
 * (a table that is being altered, a value of many megabytes) holds up all behind it. So those behind a slow one are sent to
 * connections of their own, and nobody joins while somebody waits for a connection.
 */
export function lanes(pool: Pool): Lanes {
  const open = new Set<SharedLane>()
  let closedUntil = 0
  let watch: NodeJS.Timeout | undefined

  function join(): Lane | undefined {
    if (pool.stats().waiting > 0 || performance.now() < closedUntil) return undefined
    for (const lane of open) if (lane.isBroken()) open.delete(lane)
    const lane = open.size < most ? begin() : leastCrowded(open)
    if (lane.users >= crowd) return undefined
    lane.users++
    return lane
  }

  function begin(): SharedLane {
    const lane = new SharedLane(pool, () => open.delete(lane))
    open.add(lane)
    // After what has arrived meanwhile has been read: that the process itself was busy is nobody's fault here.
    watch ??= setInterval(() => setImmediate(look), patience / 2).unref()
    return lane
  }

  function look(): void {
    for (const lane of open) {
      if (!lane.unburden()) continue
      open.delete(lane)
      closedUntil = performance.now() + pause
    }
    if (open.size > 0) return
    clearInterval(watch)
    watch = undefined
  }

  return { join }
}

class SharedLane implements Lane {
  users = 0
  readonly client: Promise<RowClient>
  #connected: RowClient | undefined
  readonly #pool: Pool
  readonly #onEmpty: () => void

  constructor(pool: Pool, onEmpty: () => void) {
    this.#pool = pool
    this.#onEmpty = onEmpty
    this.client = this.#connect()
  }

  async #connect(): Promise<RowClient> {
    this.#connected = await this.#pool.acquire()
    return this.#connected
  }

  isBroken(): boolean {
    return this.#connected?.isAlive() === false
  }

  unburden(): boolean {
    return this.#connected?.unburden(patience) ?? false
  }

  leave(): void {
    if (--this.users > 0) return
    this.#onEmpty()
    if (this.#connected !== undefined) this.#pool.release(this.#connected)
  }
}

function leastCrowded(lanes: Iterable<SharedLane>): SharedLane {
  const [first, ...others] = lanes
  if (first === undefined) throw new Error('There is no lane')
  return others.reduce((least, lane) => (lane.users < least.users ? lane : least), first)
}
