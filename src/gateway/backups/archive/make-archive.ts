import type { Kernel } from '#kernel/kernel.ts'
import { VERSION } from '#kernel/version.ts'
import type { JobControl } from '../jobs/lease.ts'
import type { JobRow } from '../jobs/store.ts'
import type { EmbeddedSource } from '../sources.ts'
import { type Entry, packArchive, textEntry } from './archive.ts'
import { copyServer } from './physical-copy.ts'
import { sealStream } from './sealed-stream.ts'

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

/** The sealed archive of the embedded server. */
export const archiveOf = (
  kernel: Kernel,
  embedded: EmbeddedSource,
  job: JobRow,
  running: JobControl,
): AsyncGenerator<Buffer> => sealStream(kernel, packArchive(entriesOf(kernel, embedded, job, running)))

async function* entriesOf(
  { now }: Kernel,
  { url, password }: EmbeddedSource,
  { id, clientName, label }: JobRow,
  running: JobControl,
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
    label: `gatehouse ${id}`,
    onTotal: (bytes) => {
      total = bytes
    },
    onBytes: (bytes) => {
      done += bytes
      running.report('copying', Math.min(done / total, 1))
    },
  })
  running.report('finishing', 0.99)
}
