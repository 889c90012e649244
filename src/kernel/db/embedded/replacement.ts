import { existsSync, readdirSync } from 'node:fs'
import { open, readdir, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'

/**
 * A restore recovers its database in a work folder, and renames it to `data-restored` when it is complete, then the former `data` aside, then
 * `data-restored` to `data`. So the folder shows how far a restore came whose process was killed: with `data` beside it, nothing was
 * replaced; without, only the last rename is missing.
 */
export const RESTORE_WORK = 'restore-'
const FORMER = 'data-before-restore-'

const dataOf = (folder: string) => path.join(folder, 'data')
const completeOf = (folder: string) => path.join(folder, 'data-restored')
/** Whether the folder of the embedded server has a database. */
export const hasDatabase = (folder: string): boolean => existsSync(path.join(dataOf(folder), 'PG_VERSION'))

/** Puts a complete database in the place of `data`. Returns where the former one is now. The caller holds the folder's lock. */
export async function replaceData(folder: string, database: string): Promise<string | undefined> {
  await rename(database, completeOf(folder))
  await syncFolder(folder)
  const former = existsSync(dataOf(folder)) ? await setAside(folder) : undefined
  await putComplete(folder)
  return former
}

async function putComplete(folder: string): Promise<void> {
  await rename(completeOf(folder), dataOf(folder))
  await syncFolder(folder)
}

/** `data-before-restore-20260131T120000Z` */
async function setAside(folder: string): Promise<string> {
  const { mtime } = await stat(dataOf(folder))
  const time = `${mtime.toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
  for (let count = 0; ; count++) {
    const former = path.join(folder, `${FORMER}${time}${count === 0 ? '' : `-${count}`}`)
    if (existsSync(former)) continue
    await rename(dataOf(folder), former)
    return former
  }
}

/** Ends what a restore has left whose process was killed: completes the replacement, or removes its copy. The caller holds the folder's lock. */
export async function settleReplacement(folder: string, report: (step: string) => void): Promise<void> {
  if (!hasDatabase(folder) && existsSync(completeOf(folder))) {
    report('complete the restore that was interrupted')
    await putComplete(folder)
  }
  if (hasDatabase(folder)) await removeCopies(folder)
}

/** Removes the copies of restores that were killed. A complete one is renamed first, since it must not look complete while it is removed. */
export async function removeCopies(folder: string): Promise<void> {
  await removeWork(folder)
  if (!existsSync(completeOf(folder))) return
  await rename(completeOf(folder), path.join(folder, `${RESTORE_WORK}undone`))
  await removeWork(folder)
}

async function removeWork(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (name.startsWith(RESTORE_WORK))
      await rm(path.join(folder, name), { recursive: true, force: true, maxRetries: 5 })
}

/** How a restore has ended that has left no database in the folder. */
type InterruptedRestore = {
  /** The next start completes it. */
  readonly isComplete: boolean
  /** Advice to the operator. */
  readonly says: string
}

/** Undefined if there is a database, or if no restore has begun. Changes nothing. */
export function findInterrupted(folder: string): InterruptedRestore | undefined {
  if (hasDatabase(folder)) return undefined
  const names = namesIn(folder)
  const former = names.findLast((name) => name.startsWith(FORMER))
  const begun = `There is no database in ${path.resolve(folder)}, since a restore into it`
  if (existsSync(completeOf(folder)))
    return {
      isComplete: true,
      says: `${begun} was interrupted at its last step: start gatehouse serve, which completes it.`,
    }
  const work = names.find((name) => name.startsWith(RESTORE_WORK))
  if (former === undefined && work === undefined) return undefined
  const instead =
    former === undefined
      ? `remove ${work} in it to begin with a new database`
      : `rename ${former} in it to data, which is the database before the restore`
  return {
    isComplete: false,
    says: `${begun} was interrupted, or still runs: run gatehouse restore again, or ${instead}.`,
  }
}

/** None in a folder that is missing or closed to this user; the start reports that. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

/** So that a rename in the folder survives a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}
