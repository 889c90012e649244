import type { Load } from './load/load.ts'
import { processorTime } from './processor.ts'

/** Work that was done in one turn. `load` is the processor time of whatever sends the work, in µs. */
export type Work = {
  readonly done: number
  readonly failed: number
  readonly seconds: number
  readonly load: number
  /** Where something else than the rate is compared. */
  readonly value?: number
}

/** Something that does the work of a scenario. */
export type Side = {
  readonly name: string
  /** What else decides its speed: durability, cost of a hash, log, cache. */
  readonly about: string
  /** Process id of its service, with all processes below it; undefined if the work reaches the database directly. */
  readonly pid?: number | undefined
  /** What the next work needs, such as sessions to end. It costs the turn nothing. */
  prepare?(): Promise<void>
  work(seconds: number): Promise<Work>
  /** Compares its answers with the expected values. Throws if one is wrong. */
  check(): Promise<void>
  /** The load of the next turn, for latency at a constant rate. */
  load?(): Promise<Load>
}

/** What a turn has cost. Processor times are µs. */
export type Turn = Work & {
  readonly service: number
  readonly database: number
  /** Why the turn does not count. */
  readonly void?: string
}

export async function takeTurn(side: Side, seconds: number, database: number): Promise<Turn> {
  const wrong = await problemOf(side)
  const turn = await takeSlice(side, seconds, database)
  const problem = wrong ?? (await problemOf(side)) ?? turn.void
  return { ...turn, ...(problem !== undefined && { void: problem }) }
}

/** A part of a turn, without a look at the answers. */
export async function takeSlice(side: Side, seconds: number, database: number): Promise<Turn> {
  await side.prepare?.()
  const before = timesOf(side, database)
  const work = await side.work(seconds)
  const after = timesOf(side, database)
  return {
    ...work,
    service: after.service - before.service,
    database: after.database - before.database,
    ...(work.done === 0 && { void: 'nothing was done' }),
  }
}

const timesOf = ({ pid }: Side, database: number) => ({
  service: pid === undefined ? 0 : processorTime(pid),
  database: processorTime(database),
})

export async function problemOf(side: Side): Promise<string | undefined> {
  try {
    await side.check()
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** The rate per second where the work says nothing else. A turn that does not count has none. */
export const resultOf = (turn: Turn): number =>
  turn.void ? Number.NaN : (turn.value ?? turn.done / turn.seconds)

/** A request's, of service and database. The load is not part of the product. */
export function microseconds(turns: readonly Turn[]): number {
  const done = turns.reduce((sum, turn) => sum + turn.done, 0)
  return turns.reduce((sum, { service, database }) => sum + service + database, 0) / done
}

/** Rotates the list, so that each round begins with a different item. */
export function inTurns<T>(list: readonly T[], round: number): readonly T[] {
  const first = ((round % list.length) + list.length) % list.length
  return [...list.slice(first), ...list.slice(0, first)]
}
