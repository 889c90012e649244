import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { isThere } from './load.ts'

export const PGBENCH = 'pgbench -M prepared'

export const hasPgbench = isThere('pgbench', '--version')

/** Executions of the script per second, on the given number of connections. */
export async function transactionsPerSecond(
  databaseUrl: string,
  script: string,
  { connections, seconds }: { readonly connections: number; readonly seconds: number },
): Promise<number> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-pgbench-'))
  try {
    const file = path.join(folder, 'script.sql')
    await writeFile(file, script)
    const size = ['-c', `${connections}`, '-j', '2', '-T', `${seconds}`]
    const { stdout } = await promisify(execFile)('pgbench', [
      '--no-vacuum',
      ...['-M', 'prepared', '-f', file, ...size],
      databaseUrl,
    ])
    const [, tps] = /tps = ([\d.]+) \(without/.exec(stdout) ?? []
    if (tps === undefined) throw new Error(stdout)
    return Number(tps)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
