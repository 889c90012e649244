import { statfs } from 'node:fs/promises'
import path from 'node:path'
import type { Kernel } from '#kernel/kernel.ts'
import type { BackupStore } from './backup-store.ts'
import { createFolderStore } from './folder-store.ts'
import { createS3Store } from './s3-store.ts'

/** The location of a new backup: a file, or `s3://bucket/prefix/name`. */
export function locationOf({ backups, server }: Kernel['config'], name: string): string {
  const location = backups.location ?? path.join(server.data_dir, 'backups')
  return isInS3(location) ? `${location.replace(/\/$/, '')}/${name}` : path.resolve(location, name)
}

/** The store of a location. A backup is found where it was written, also after `backups.location` was changed. */
export const storeOf = ({ config }: Pick<Kernel, 'config'>, location: string): BackupStore =>
  isInS3(location) ? createS3Store(config) : createFolderStore(config.server.min_free_disk)

/** A sentence for the operator if the folder's disk is full. One that does not exist yet has none. */
export async function diskProblem({ backups, server }: Kernel['config']): Promise<string | undefined> {
  if (backups.location === undefined || isInS3(backups.location)) return undefined
  const found = await statfs(backups.location).catch(() => undefined)
  if (found === undefined || found.bavail * found.bsize >= server.min_free_disk) return undefined
  return 'The disk of backups.location is full: free space, or lower server.min_free_disk'
}

export const isInS3 = (location: string): boolean => location.startsWith('s3://')
