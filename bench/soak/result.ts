import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ROOT } from '../git.ts'
import type { Times } from '../load/load.ts'
import type { RunResults } from '../results.ts'
import { aboutThisRun, FOLDER, rounded } from '../results-file.ts'
import type { Sample, Slope } from './slope.ts'

/** A file of a soak. */
export type Soak = RunResults & {
  readonly minutes: number
  /** Processes of the service that answer requests. */
  readonly workers: number
  readonly seed: number
  /** Flat out: requests a second by number of connections. */
  readonly ramp: readonly { readonly connections: number; readonly rate: number }[]
  readonly maximum: number
  /** Requests a second of the soak. */
  readonly rate: number
  readonly requests: number
  readonly failed: number
  /** Numbers by kind of request, and of failure. */
  readonly kinds: Readonly<Record<string, number>>
  readonly failures: Readonly<Record<string, number>>
  readonly latency: Times
  /** How late the load process was itself. */
  readonly lag: Times
  /** Pss of all processes of the service. */
  readonly memory: readonly Sample[]
  /** Of the second half of the memory. */
  readonly slope: Slope
}

/** A soak, and its path from the root. */
export type NamedSoak = { readonly file: string; readonly soak: Soak }

/** Minutes from which a soak is a source of the page. */
const WHOLE = 10
const SUFFIX = '-soak.json'
/** Never committed. */
const SHORT = path.join(ROOT, 'node_modules/.cache/bench-soak.json')

/** Writes the file and returns its path from the working directory. */
export async function writeSoak(soak: Omit<Soak, keyof RunResults>, server: string): Promise<string> {
  const all: Soak = { ...(await aboutThisRun(server)), ...soak }
  const file = soak.minutes < WHOLE ? SHORT : path.join(FOLDER, `${all.date}-${all.commit}${SUFFIX}`)
  await mkdir(path.dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify(all, rounded, 1)}\n`)
  return path.relative('.', file)
}

/** The newest whole soak, with its path from the root. Names begin with the date. */
export async function newestSoak(): Promise<NamedSoak | undefined> {
  const name = (await readdir(FOLDER).catch(() => []))
    .filter((found) => found.endsWith(SUFFIX))
    .toSorted()
    .at(-1)
  if (name === undefined) return undefined
  const file = path.join(FOLDER, name)
  // written by `writeSoak`
  return { file: path.relative(ROOT, file), soak: JSON.parse(await readFile(file, 'utf8')) as Soak }
}
