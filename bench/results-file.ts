import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { git } from './git.ts'
import type { Results, RunResults, ScenarioResult } from './results.ts'

export const FOLDER = path.join(import.meta.dirname, 'results')
/** Never committed, and never the source of a page. */
const QUICK = path.join(import.meta.dirname, '../node_modules/.cache/bench-quick.json')

export type ResultsFile = {
  /** From the working directory. */
  readonly path: string
  /** Those of the names that the file does not have yet. */
  left(names: readonly string[]): readonly string[]
  add(name: string, result: ScenarioResult, server: string): Promise<void>
}

type About = Pick<Results, 'quick' | 'seed' | 'seconds'>

/** The file of this commit, which an interrupted run has begun, or a new one. */
export async function openResults(about: About): Promise<ResultsFile> {
  const run = await aboutThisRun()
  const begun = about.quick
    ? undefined
    : (await readdir(FOLDER).catch(() => [])).find((name) => name.endsWith(`-${run.commit}.json`))
  const file = about.quick ? QUICK : path.join(FOLDER, begun ?? `${run.date}-${run.commit}.json`)
  let results: Results = begun ? await readResults(file) : { ...run, ...about, scenarios: {} }
  return {
    path: path.relative('.', file),
    left: (names) => names.filter((name) => !(name in results.scenarios)),
    async add(name, result, server) {
      results = {
        ...results,
        versions: { ...results.versions, server },
        scenarios: { ...results.scenarios, [name]: result },
      }
      await mkdir(path.dirname(file), { recursive: true })
      await writeFile(file, `${JSON.stringify(results, rounded, 1)}\n`)
    },
  }
}

/** Six digits are more than any of these figures has. */
export const rounded = (_name: string, value: unknown): unknown =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value

export const readResults = async (file: string): Promise<Results> =>
  JSON.parse(await readFile(file, 'utf8')) as Results // written by `add`

/** What the figures of this moment are of. */
export async function aboutThisRun(server?: string): Promise<RunResults> {
  const [cpu] = os.cpus()
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: await git('rev-parse', '--short=8', 'HEAD'),
    changed: (await git('status', '--porcelain', '--untracked-files=no')) !== '',
    machine: {
      processors: `${os.cpus().length} × ${cpu?.model.trim() ?? 'unknown'}`,
      memory: `${Math.round(os.totalmem() / 2 ** 30)} GiB`,
      system: `${os.type()} ${os.release()} ${os.arch()}`,
      'load before': os.loadavg()[0]?.toFixed(2) ?? '',
    },
    versions: { node: process.versions.node, ...(server !== undefined && { server }) },
  }
}
