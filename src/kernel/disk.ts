import { statfs } from 'node:fs/promises'
import type { Config } from './config/config.ts'

/** Where there is no room left to write: on the disk of `server.data_dir`, and on the control database's, which only its failures tell of. */
export type Disk = {
  /** A sentence for each, for the operator. */
  problems(): Promise<readonly string[]>
  /** Looks at a failure, whatever it is. */
  noteFailure(error: unknown): void
}

/** How long a failure counts, milliseconds: the database does not say when there is room again. */
const FAILURE_COUNTS_FOR = 30_000

/** disk_full of PostgreSQL, and what the system says. */
const FULL = new Set(['53100', 'ENOSPC', 'EDQUOT'])

export function watchDisk({ server }: Config): Disk {
  let failedAt = Number.NEGATIVE_INFINITY
  return {
    noteFailure(error) {
      const { code } = Object(error) as { code?: unknown } // whatever was thrown
      if (typeof code === 'string' && FULL.has(code)) failedAt = performance.now()
    },
    async problems() {
      const { bavail, bsize } = await statfs(server.data_dir).catch(() => NOT_THERE)
      return [
        ...(bavail * bsize < server.min_free_disk
          ? ['The disk of server.data_dir is full: make room, or lower server.min_free_disk']
          : []),
        ...(performance.now() - failedAt < FAILURE_COUNTS_FOR
          ? ['A write has failed because a disk is full: make room for the control database']
          : []),
      ]
    },
  }
}

/** A folder that does not exist: nothing has been kept on this machine yet. */
const NOT_THERE = { bavail: Number.POSITIVE_INFINITY, bsize: 1 }
