/** Keeps the bytes of backups: in a folder, or in a bucket of an S3-compatible server. Locations are those of job rows. */
export type BackupStore = {
  /** The backup is there as a whole when this returns, and nothing of it when it throws. */
  write(location: string, source: AsyncIterable<Buffer>, signal: AbortSignal): Promise<Written>
  /** Undefined when the backup is gone. */
  open(location: string): Promise<OpenBackup | undefined>
  /** Removes a complete backup. */
  remove(location: string): Promise<void>
  /** Removes what an unfinished job has left. */
  discard(location: string): Promise<void>
}

export type Written = { readonly size: number; readonly sha256: string }

/** It has to be closed. */
export type OpenBackup = {
  readonly size: number
  /** All bytes from the beginning, at each call. It ends with an error when the signal aborts. */
  content(signal?: AbortSignal): AsyncGenerator<Buffer>
  close(): Promise<void>
}
