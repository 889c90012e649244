import type { Target } from './scenario.ts'
import type { Interval } from './statistics.ts'
import type { Turn } from './turns.ts'

/** Latency at a share of the maximum rate; milliseconds. */
export type Latency = {
  readonly share: number
  readonly rate: number
  readonly p50: number
  readonly p99: number
  /** How late the load process was itself. */
  readonly lag: number
  readonly failed: number
}

export type SideResult = {
  readonly name: string
  readonly about: string
  readonly rounds: readonly Turn[]
  readonly latency: readonly Latency[]
}

export type ScenarioResult = {
  readonly title: string
  readonly unit: string
  readonly target?: Target
  readonly at: string
  /** Ours against ours, at the beginning of the run that this scenario belongs to. */
  readonly control: Interval
  readonly sides: readonly SideResult[]
  /** Peers that were not there, with the reason. */
  readonly missing: Readonly<Record<string, string>>
}

/** What figures are of. */
export type RunResults = {
  readonly date: string
  readonly commit: string
  /** Whether files differed from the commit. */
  readonly changed: boolean
  readonly machine: Readonly<Record<string, string>>
  readonly versions: Readonly<Record<string, string>>
}

/** One file. Every figure of docs/performance.md comes from it, but for growth. */
export type Results = RunResults & {
  readonly quick: boolean
  readonly seed: number
  readonly seconds: number
  readonly scenarios: Readonly<Record<string, ScenarioResult>>
}

/** Ours against ours: outside of it, only processor times are published. */
export const CONTROL = { low: 0.95, high: 1.05 }

export const isQuiet = ({ low, high }: Interval): boolean => low >= CONTROL.low && high <= CONTROL.high
