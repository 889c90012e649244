import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import type { Load } from './load/load.ts'
import type { Loader } from './load/loader.ts'
import { endedChildrenOf } from './processor.ts'
import type { Bench } from './scenario.ts'
import type { Side, Work } from './turns.ts'

/** How the service runs in every scenario. */
export const OURS =
  'argon2id 19456 KiB, 2 passes; log of problems; sessions and keys cached, rows not; rate limits, metrics, request ids and a foreign webhook on'

export type Http = Pick<Side, 'name' | 'pid' | 'about' | 'check'> & {
  /** A function gives the load of each turn, for requests that can be sent once only. */
  readonly load: Load | (() => Promise<Load>)
}

/** A side that answers requests. */
export function httpSide(loader: Loader, { load, ...side }: Http): Side {
  const next = async () => (typeof load === 'function' ? load() : load)
  let prepared: Load | undefined
  return {
    ...side,
    isDivisible: typeof load !== 'function',
    load: next,
    async prepare() {
      prepared = await next()
    },
    async work(seconds) {
      const {
        processor,
        done,
        failed,
        seconds: took,
      } = await loader.perform({
        load: prepared ?? (await next()),
        seconds,
      })
      return { done, failed, seconds: took, load: processor }
    },
  }
}

type Ours = Pick<Http, 'load' | 'check'> & { readonly name?: string }

export const ourSide = ({ loader, service }: Bench, { name = 'Gatehouse', ...checked }: Ours): Side =>
  httpSide(loader, { name, pid: service.pid, about: OURS, ...checked })

/** Work of programs that this process starts, which are the load. */
async function byPrograms(run: () => Promise<Pick<Work, 'done' | 'failed'>>): Promise<Work> {
  const [before, began] = [endedChildrenOf(process.pid), performance.now()]
  const counts = await run()
  const seconds = (performance.now() - began) / 1_000
  return { ...counts, seconds, load: endedChildrenOf(process.pid) - before }
}

const execute = promisify(execFile)

export const PGBENCH = 'pgbench -M prepared'

/** The limit of the database alone, by the same number of connections. */
export async function pgbenchSide(
  { service: { databaseUrl }, after }: Bench,
  script: string,
  { name = PGBENCH, connections }: { name?: string; connections: number },
): Promise<Side> {
  const file = await withFile(after, 'script.sql', script)
  return {
    name,
    about: 'no service; the same server and connections',
    check: async () => {},
    async work(seconds) {
      let rate = Number.NaN
      const work = await byPrograms(async () => {
        const { rate: found, ...counts } = await runPgbench(databaseUrl, { file, connections, seconds })
        rate = found
        return counts
      })
      return { ...work, value: rate }
    },
  }
}

type PgbenchRun = { readonly file: string; readonly connections: number; readonly seconds: number }

/** Prepared, with `-j 2` as there are processors here. The rate is without the time of connecting. */
export async function runPgbench(
  url: string,
  { file, connections, seconds }: PgbenchRun,
): Promise<{ readonly done: number; readonly failed: number; readonly rate: number }> {
  const size = ['-c', `${connections}`, '-j', '2', '-T', `${Math.max(1, Math.round(seconds))}`]
  const { stdout } = await execute('pgbench', ['-n', '-M', 'prepared', '-f', file, ...size, url])
  const [, done] = /transactions actually processed: (\d+)/.exec(stdout) ?? []
  const [, failed = '0'] = /failed transactions: (\d+)/.exec(stdout) ?? []
  const [, rate] = /tps = ([\d.]+) \(without/.exec(stdout) ?? []
  return { done: Number(done), failed: Number(failed), rate: Number(rate) }
}

/** A limit by psql, which may be several in a shell; `$URL` is the database. */
export const shellSide = (
  { service: { databaseUrl } }: Bench,
  { name, command, done, before }: { name: string; command: string; done: number; before(): Promise<void> },
): Side => ({
  name,
  about: 'no service; one connection; text format',
  check: async () => {},
  async work() {
    await before()
    return byPrograms(async () => {
      await execute('sh', ['-ec', command], { env: { ...process.env, URL: databaseUrl } })
      return { done, failed: 0 }
    })
  },
})

/** Writes a file that is removed after the scenario, and returns its path. */
export async function withFile(after: Bench['after'], name: string, content: string): Promise<string> {
  const folder = await createTemporaryFolder()
  after(() => removeFolder(folder))
  const file = path.join(folder, name)
  await writeFile(file, content)
  return file
}
