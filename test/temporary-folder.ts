import { mkdtemp, readdir, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { isAlive } from './processes.ts'

const PREFIX = 'gatehouse-test-'

/** Creates a temporary folder. The caller must remove it. */
export async function createTemporaryFolder(place?: string): Promise<string> {
  return mkdtemp(path.join(place ?? (await temporaryPlace()), `${PREFIX}${process.pid}-`))
}

/** Tries again while another process, such as a server that was just killed, still writes there. */
export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })

/** Removes folders of killed processes, except those of other users. */
export async function removeAbandoned(): Promise<void> {
  const place = await temporaryPlace()
  for (const name of await readdir(place)) {
    const pid = Number(name.startsWith(PREFIX) && name.slice(PREFIX.length).split('-')[0])
    if (!pid || isAlive(pid)) continue
    await removeFolder(path.join(place, name)).catch(() => {})
  }
}

/** Prefers /dev/shm if it has 4 GiB free: on a disk, the 300 files of a new database can take half a second. */
async function temporaryPlace(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined)
  return memory && memory.bavail * memory.bsize > 4 * 2 ** 30 ? '/dev/shm' : tmpdir()
}
