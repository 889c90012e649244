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
  /** What the value is made of. */
  readonly parts?: Readonly<Record<string, number>>
}

/** Something that does the work of a scenario. */
export type Side = {
  readonly name: string
  /** What else decides its speed: durability, cost of a hash, log, cache. */
  readonly about: string
  /** Process id of its service, with all processes below it; undefined if the work reaches the database directly. */
  readonly pid?: number | undefined
  /** Its work can be done in parts, each of as many seconds as it is told. */
  readonly isDivisible?: boolean
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

/** Parts of a turn, by which the sides alternate. */
const PARTS = 3

/**
 * A turn of each side, beginning with another one each round. A side whose work can be divided does it in parts, between which the others
 * do theirs, so that what disturbs the machine for a second meets all of them.
 */
export async function takeRound(
  sides: readonly Side[],
  round: number,
  { seconds, database, signal }: { seconds: number; database: number; signal?: AbortSignal },
): Promise<ReadonlyMap<Side, Turn>> {
  const problems = new Map<Side, string>()
  const check = async (side: Side): Promise<void> => {
    const problem = problems.has(side) ? undefined : await problemOf(side)
    if (problem !== undefined) problems.set(side, problem)
  }
  const parts = new Map<Side, Turn[]>(sides.map((side) => [side, []]))
  const take = async (side: Side, share: number): Promise<void> => {
    signal?.throwIfAborted()
    parts.get(side)?.push(await takePart(side, share, database))
  }
  const divisible = sides.filter(({ isDivisible }) => isDivisible)
  for (const side of divisible) await check(side)
  for (let part = 0; part < PARTS; part++)
    for (const side of inTurns(sides, round + part)) {
      if (side.isDivisible) await take(side, seconds / PARTS)
      else if (part === 0) {
        await check(side)
        await take(side, seconds)
        // Before another side changes what it looks at.
        await check(side)
      }
    }
  for (const side of divisible) await check(side)
  return new Map(
    sides.map((side) => {
      const turn = joined(parts.get(side) ?? [])
      const problem = problems.get(side) ?? turn.void
      return [side, { ...turn, ...(problem !== undefined && { void: problem }) }]
    }),
  )
}

async function takePart(side: Side, seconds: number, database: number): Promise<Turn> {
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

/** Only work without a value of its own is divided. */
function joined(parts: readonly Turn[]): Turn {
  const [first] = parts
  if (first === undefined) throw new Error('A turn without a part')
  const sum = (amount: (part: Turn) => number) => parts.reduce((total, part) => total + amount(part), 0)
  return {
    ...(parts.find((part) => part.void !== undefined) ?? first),
    done: sum(({ done }) => done),
    failed: sum(({ failed }) => failed),
    seconds: sum(({ seconds }) => seconds),
    load: sum(({ load }) => load),
    service: sum(({ service }) => service),
    database: sum(({ database }) => database),
  }
}

const timesOf = ({ pid }: Side, database: number) => ({
  service: pid === undefined ? 0 : processorTime(pid),
  database: processorTime(database),
})

async function problemOf(side: Side): Promise<string | undefined> {
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
