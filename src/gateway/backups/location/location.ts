import { access, constants, stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { BackupStore } from './backup-store.ts'
import { createFolderStore } from './folder-store.ts'
import { createS3Store, requireBucket } from './s3-store.ts'

/** The location of a new backup: a file, or `s3://bucket/prefix/name`. */
export function locationOf({ backups, server }: Kernel['config'], name: string): string {
  const location = backups.location ?? path.join(server.data_dir, 'backups')
  return isInS3(location) ? `${location.replace(/\/$/, '')}/${name}` : path.resolve(location, name)
}

/** The store of a location. A backup is found where it was written, also after `backups.location` was changed. */
export const storeOf = ({ config }: Pick<Kernel, 'config'>, location: string): BackupStore =>
  isInS3(location) ? createS3Store(config) : createFolderStore(config.server.min_free_disk)

/** Why no backup can be written, as a sentence for the operator; undefined when one can. Changes nothing. */
export async function locationProblem(config: Kernel['config']): Promise<string | undefined> {
  const { backups, server } = config
  const { location = path.join(server.data_dir, 'backups') } = backups
  if (isInS3(location)) return bucketProblem(config)
  try {
    const { bavail, bsize } = await statfs(await nearestFolder(path.resolve(location)))
    if (bavail * bsize >= server.min_free_disk) return undefined
    return 'The disk of backups.location is full: free space, or lower server.min_free_disk'
  } catch (error) {
    return (
      `Backups cannot be written to ${path.resolve(location)} (${(error as NodeJS.ErrnoException).code}): ` + // thrown by node:fs
      'give the folder to the user of the service, or name another in backups.location'
    )
  }
}

async function bucketProblem(config: Kernel['config']): Promise<string | undefined> {
  try {
    await requireBucket(config)
    return undefined
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return [error.message, error.hint].filter(Boolean).join('. ')
  }
}

/** The folder, or the nearest one above it that exists. Throws unless this process may write there. */
async function nearestFolder(folder: string): Promise<string> {
  const found = await stat(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (found === undefined) return nearestFolder(path.dirname(folder))
  if (!found.isDirectory()) throw Object.assign(new Error(`${folder} is a file`), { code: 'ENOTDIR' })
  await access(folder, constants.W_OK | constants.X_OK)
  return folder
}

export const isInS3 = (location: string): boolean => location.startsWith('s3://')
