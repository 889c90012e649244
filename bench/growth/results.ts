import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ROOT } from '../git.ts'
import type { RunResults } from '../results.ts'
import { rounded } from '../results-file.ts'

/** A subject at one size. µs a request. */
export type Point = {
  readonly size: number
  readonly service: number
  readonly database: number
  readonly done: number
  readonly failed: number
}

export type Curve = {
  readonly title: string
  /** What there are so many of. */
  readonly of: string
  /** The size that the largest is compared with. */
  readonly from: number
  /** Of a request whose other part is the same at every size, only the database is compared. */
  readonly compared: 'all' | 'database'
  readonly points: readonly Point[]
}

/** One whole run. */
export type GrowthResults = RunResults & { readonly curves: readonly Curve[] }

/** The table of docs/performance.md comes from this file, which each whole run replaces. */
export const GROWTH_FILE = 'bench/results/growth.json'
/** Of smaller runs; never committed. */
export const LOOK_FILE = 'node_modules/.cache/bench-growth.json'

/** Undefined before the first whole run. */
export async function readGrowth(): Promise<GrowthResults | undefined> {
  const file = path.join(ROOT, GROWTH_FILE)
  return existsSync(file) ? (JSON.parse(await readFile(file, 'utf8')) as GrowthResults) : undefined // written by `writeGrowth`
}

export async function writeGrowth(name: string, results: GrowthResults): Promise<void> {
  const file = path.join(ROOT, name)
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify(results, rounded, 1)}\n`)
}

/** The largest size may cost so many times what the one that it is compared with does. */
export const FLAT = 1.5

export function ratioOf({ points, from, compared }: Curve): number {
  const costAt = (point: Point | undefined): number =>
    point === undefined ? Number.NaN : point.database + (compared === 'all' ? point.service : 0)
  return costAt(points.at(-1)) / costAt(points.find(({ size }) => size === from) ?? points[0])
}
