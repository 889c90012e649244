import { onConnection } from '#kernel/db/guarded-client.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { TABLES_OF_CHANGES } from '../former-state.ts'
import type { JobControl } from '../jobs/lease.ts'
import { type BackupSources, programFor, type Source } from '../sources.ts'
import { libpqEnvironment } from './libpq-environment.ts'
import { runProgram } from './run-program.ts'

type Dumped = Extract<Source, { format: 'dump' }>

/** A dump is about a quarter as long as its database; only the progress depends on it. */
const COMPRESSED = 0.25

/** The dump of a client's database, as pg_dump writes it. */
export async function dumpOf(
  kernel: Kernel,
  sources: BackupSources,
  { url, major }: Dumped,
  running: JobControl,
): Promise<AsyncGenerator<Buffer>> {
  const program = await programFor(kernel, sources, 'pg_dump', major)
  const { size, encoding } = await factsOf(url)
  const expected = size * COMPRESSED
  return dump()

  async function* dump(): AsyncGenerator<Buffer> {
    const abandoned = new AbortController()
    const signal = AbortSignal.any([running.signal, abandoned.signal])
    const parameters = [
      '--format=custom',
      '--no-password',
      // A role may have been given another one, which lacks characters of the database.
      `--encoding=${encoding}`,
      `--lock-wait-timeout=${kernel.config.backups.lock_timeout}`,
      ...TABLES_OF_CHANGES.map((table) => `--exclude-table-data=public.${table}`),
    ]
    const dumping = runProgram(program, parameters, libpqEnvironment(url, program.major), signal)
    dumping.stdin.end()
    let done = 0
    try {
      for await (const chunk of dumping.stdout as AsyncIterable<Buffer>) {
        done += chunk.length
        running.report('dumping', done / expected)
        yield chunk
      }
      await dumping.ended
    } finally {
      // Without effect on a program that has ended.
      abandoned.abort(new Error('the dump was abandoned'))
      await dumping.ended.catch(() => {})
    }
  }
}

type Facts = { readonly size: number; readonly encoding: string }

async function factsOf(url: string): Promise<Facts> {
  return onConnection({ url, name: 'backup' }, async (client) => {
    const { rows } = await client.query<{ size: string; encoding: string }>(
      'select pg_database_size(current_database()) as size, getdatabaseencoding() as encoding',
    )
    const { size = '1', encoding = 'UTF8' } = rows[0] ?? {}
    return { size: Number(size), encoding }
  })
}
