import { mkdtemp, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** A new folder, in `temporaryPlace()`, that whoever asked removes. */
export async function temporaryFolder(prefix: string): Promise<string> {
  return mkdtemp(path.join(await temporaryPlace(), prefix))
}

/** In memory where there is plenty of it: on a disk, the 300 files of a new database can take half a second. */
export async function temporaryPlace(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined)
  return memory && memory.bavail * memory.bsize > 4 * 2 ** 30 ? '/dev/shm' : tmpdir()
}
