import { isQuiet, type ScenarioResult, type SideResult } from './results.ts'
import { bootstrap, type Interval, median, quantile, ratios } from './statistics.ts'
import { microseconds, resultOf, type Turn } from './turns.ts'

/** What a scenario's samples say about one side. */
export type SideSummary = {
  readonly name: string
  readonly value: number
  /** 5th and 95th percentile of the rounds. */
  readonly from: number
  readonly to: number
  /** Ours to this side; undefined for ours. */
  readonly ratio: Interval | undefined
  /** Processor µs of one request or row. */
  readonly service: number
  readonly database: number
  readonly load: number
  readonly done: number
  readonly failed: number
  readonly voided: number
}

export type Verdict = {
  /** `0.22 of pgbench`. */
  readonly says: string
  readonly found: Interval
  /** Undefined where the machine was too noisy. */
  readonly isMet: boolean | undefined
}

export const valuesOf = ({ rounds }: SideResult): readonly number[] => rounds.map(resultOf)

export function summaryOf({ sides }: ScenarioResult, seed: number): readonly SideSummary[] {
  const [ours] = sides
  return sides.map((side) => {
    const values = valuesOf(side).filter((value) => Number.isFinite(value))
    const per = (part: (turn: Turn) => number) =>
      median(side.rounds.filter((turn) => turn.void === undefined).map((turn) => part(turn) / turn.done))
    const sum = (part: (turn: Turn) => number) => side.rounds.reduce((total, turn) => total + part(turn), 0)
    return {
      name: side.name,
      value: median(values),
      from: quantile(values, 0.05),
      to: quantile(values, 0.95),
      ratio:
        ours === side || ours === undefined
          ? undefined
          : bootstrap(ratios(valuesOf(ours), valuesOf(side)), seed),
      service: per((turn) => turn.service),
      database: per((turn) => turn.database),
      load: per((turn) => turn.load),
      done: sum((turn) => turn.done),
      failed: sum((turn) => turn.failed),
      voided: side.rounds.filter((turn) => turn.void !== undefined).length,
    }
  })
}

/** Undefined where there is no target, or where what it is compared with was not measured. */
export function verdictOf(result: ScenarioResult, seed: number): Verdict | undefined {
  const { target, sides, control } = result
  const side = (name: string | undefined) => sides.find((found) => found.name === name)
  const of = side(target?.of)
  const against = side(target?.against)
  if (target === undefined || of === undefined || (target.against && against === undefined)) return undefined
  const found = bootstrap(
    against ? ratios(valuesOf(of), valuesOf(against)) : valuesOf(of).filter(Number.isFinite),
    seed,
  )
  const bound = 'atLeast' in target ? target.atLeast : target.atMost
  const isMet = 'atLeast' in target ? found.low >= bound : found.high <= bound
  const word = 'atLeast' in target ? 'at least' : 'at most'
  return {
    says: `${word} ${bound}${target.against ? ` of ${target.against}` : ` ${result.unit}`}`,
    found,
    isMet: isQuiet(control) ? isMet : undefined,
  }
}

/** Median processor time of a request of service and database. */
export const costOf = ({ rounds }: SideResult): number =>
  median(rounds.filter((turn) => turn.void === undefined).map((turn) => microseconds([turn])))
