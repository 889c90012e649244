import { statfs } from 'node:fs/promises'
import type { Config } from './config/config.ts'

/** Watches for full disks: that of `server.data_dir`, and that of the control database, which shows only in failed writes. */
export type Disk = {
  /** One sentence for each full disk, for the operator. */
  problems(): Promise<readonly string[]>
  /** Looks at any failure, and remembers it when a full disk caused it. */
  noteFailure(error: unknown): void
}

/** How long a failure counts, milliseconds: the database does not report when there is room again. */
const FAILURE_COUNTS_FOR = 30_000

/** disk_full of PostgreSQL, and the codes of the system. */
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
          ? ['The disk of server.data_dir is full: free space, or lower server.min_free_disk']
          : []),
        ...(performance.now() - failedAt < FAILURE_COUNTS_FOR
          ? ['A write has failed because a disk is full: make room for the control database']
          : []),
      ]
    },
  }
}

/** A folder that does not exist yet has no disk that could be full. */
const NOT_THERE = { bavail: Number.POSITIVE_INFINITY, bsize: 1 }
