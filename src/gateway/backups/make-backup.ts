import type { Kernel } from '#kernel/kernel.ts'
import { archiveOf } from './archive/make-archive.ts'
import { dumpOf } from './dump/make-dump.ts'
import { storeOf } from './location/location.ts'
import type { Running } from './running-job.ts'
import { type BackupSources, sourceOf } from './sources.ts'
import type { JobRow } from './store.ts'

type BackupResult = { readonly sizeBytes: string; readonly sha256: string }

/** Writes the backup of a job to its location. */
export async function makeBackup(
  kernel: Kernel,
  sources: BackupSources,
  job: JobRow,
  running: Running,
): Promise<BackupResult> {
  if (job.location === null) throw new Error(`backup ${job.id} has no location`)
  const source = await sourceOf(kernel, sources, job.clientName)
  const bytes =
    source.format === 'archive'
      ? archiveOf(kernel, source.embedded, job, running)
      : await dumpOf(kernel, sources, source, running)
  const store = storeOf(kernel, job.location)
  const { size, sha256 } = await store.write(job.location, bytes, running.signal)
  return { sizeBytes: String(size), sha256 }
}
