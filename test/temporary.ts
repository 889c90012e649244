import { mkdtemp, readdir, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

const PREFIX = 'gatehouse-test-'

/** A new folder, which whoever asked removes. */
export async function temporaryFolder(): Promise<string> {
  return mkdtemp(path.join(await temporaryPlace(), `${PREFIX}${process.pid}-`))
}

/** Removes what processes left that were killed before they could; what is another user's stays. */
export async function removeAbandoned(): Promise<void> {
  const place = await temporaryPlace()
  for (const name of await readdir(place)) {
    const pid = Number(name.startsWith(PREFIX) && name.slice(PREFIX.length).split('-')[0])
    if (!pid || isAlive(pid)) continue
    // A server that just learns of their death may still be writing.
    const gone = rm(path.join(place, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
    await gone.catch(() => {})
  }
}

/** In memory where there is plenty of it: on a disk, the 300 files of a new database can take half a second. */
async function temporaryPlace(): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined)
  return memory && memory.bavail * memory.bsize > 4 * 2 ** 30 ? '/dev/shm' : tmpdir()
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: it lives, and is somebody else's.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
