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

export const isInS3 = (location: string): boolean => location.startsWith('s3://')
