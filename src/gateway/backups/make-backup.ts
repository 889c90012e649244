import { onConnection } from '#kernel/db/guarded-client.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { VERSION } from '#kernel/version.ts'
import { type Entry, packArchive, textEntry } from './archive.ts'
import { storeOf } from './backup-location.ts'
import { libpqEnvironment } from './libpq-environment.ts'
import { copyServer } from './physical-copy.ts'
import { type BackupPlaces, type EmbeddedPlace, programFor, type Source, sourceOf } from './places.ts'
import { runProgram } from './run-program.ts'
import type { Running } from './running-job.ts'
import { sealStream } from './sealed-stream.ts'
import type { JobRow } from './store.ts'

export type BackupResult = { readonly sizeBytes: string; readonly sha256: string }

/** Writes the backup of a job to its location. */
export async function makeBackup(
  kernel: Kernel,
  places: BackupPlaces,
  job: JobRow,
  running: Running,
): Promise<BackupResult> {
  if (job.location === null) throw new Error(`backup ${job.id} has no location`)
  const source = await sourceOf(kernel, places, job.clientName)
  const bytes =
    source.format === 'archive'
      ? sealStream(kernel, packArchive(archiveEntries(kernel, source.embedded, job, running)))
      : await dumpOf(kernel, places, source, running)
  const store = storeOf(kernel, job.location)
  const { size, sha256 } = await store.write(job.location, bytes, running.signal)
  return { sizeBytes: String(size), sha256 }
}

type Dumped = Extract<Source, { format: 'dump' }>

/** A dump is about a quarter as long as its database; only the progress depends on it. */
const COMPRESSED = 0.25

async function dumpOf(
  kernel: Kernel,
  places: BackupPlaces,
  { url, major }: Dumped,
  running: Running,
): Promise<AsyncGenerator<Buffer>> {
  const program = await programFor(kernel, places, 'pg_dump', major)
  const expected = (await databaseSize(url)) * COMPRESSED
  return dump()

  async function* dump(): AsyncGenerator<Buffer> {
    const abandoned = new AbortController()
    const signal = AbortSignal.any([running.signal, abandoned.signal])
    const dumping = runProgram(program, DUMP, libpqEnvironment(url, program.major), signal)
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

const DUMP = [
  '--format=custom',
  '--no-password',
  '--lock-wait-timeout=60000',
  // Answers of the last day, which must not be replayed after a restore.
  '--exclude-table-data=public.service_idempotency',
]

async function databaseSize(url: string): Promise<number> {
  return onConnection({ url, name: 'backup' }, async (client) => {
    const { rows } = await client.query<{ size: string }>(
      'select pg_database_size(current_database()) as size',
    )
    return Number(rows[0]?.size ?? 1)
  })
}

/** Facts about an archive, in its first entry. */
export type ArchiveFacts = {
  readonly format: 1
  readonly gatehouse: string
  /** Operating system and processor, which have to be the same where it is restored. */
  readonly platform: string
  readonly job: string
  readonly client: string
  readonly label: string | null
  readonly created_at: string
}

async function* archiveEntries(
  { now }: Kernel,
  { url, dataFolder, password }: EmbeddedPlace,
  { id, clientName, label }: JobRow,
  running: Running,
): AsyncGenerator<Entry> {
  const facts: ArchiveFacts = {
    format: 1,
    gatehouse: VERSION,
    platform: `${process.platform}-${process.arch}`,
    job: id,
    client: clientName,
    label,
    created_at: now().toISOString(),
  }
  yield textEntry('backup.json', JSON.stringify(facts))
  yield textEntry('postgres-password', password)
  let total = 1
  let done = 0
  running.report('waiting for a checkpoint')
  yield* copyServer({
    url,
    dataFolder,
    label: `gatehouse ${id}`,
    onTotal: (bytes) => {
      total = bytes
    },
    onBytes: (bytes) => {
      done += bytes
      running.report('copying', done / total)
    },
  })
  running.report('finishing', 0.99)
}
