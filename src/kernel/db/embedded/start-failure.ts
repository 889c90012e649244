import { statfsSync } from 'node:fs'
import type { Binaries } from './binaries.ts'
import { EmbeddedServerError } from './error.ts'

/** The error for a program that ended at once: the cause with its remedy where it is known, then the program's log. */
export function startFailure(
  what: string,
  { folder, binaries }: { readonly folder: string; readonly binaries: Binaries },
  code: number | null,
  log: string,
): EmbeddedServerError {
  const says =
    // Exit codes of a shell for a program that it cannot execute; musl has no loader for these.
    code === 126 || code === 127
      ? `${binaries.postgres} does not run on this system (it needs glibc). DATABASE_URL names a PostgreSQL server to use instead.`
      : (remedyOf(folder, log) ?? 'DATABASE_URL names a PostgreSQL server to use instead.')
  return new EmbeddedServerError(
    [`Embedded PostgreSQL in ${folder}: ${what}. ${says}`, log].filter(Boolean).join('\n'),
  )
}

/** The first pattern that the log matches. */
const REMEDIES: readonly (readonly [RegExp, (folder: string, found: RegExpExecArray) => string])[] = [
  [
    /No space left on device|Disk quota exceeded/,
    () => 'Its disk is full: free space, and start again. Nothing that was committed is lost.',
  ],
  [
    /control file|pg_control|checkpoint record|invalid page|could not read blocks/,
    () =>
      'The database is damaged, perhaps by a fault of the disk or a partial copy: restore a backup with gatehouse restore --replace FILE.',
  ],
  [
    /initialized by PostgreSQL version (\d+)/,
    (_folder, [, version = '']) =>
      `PostgreSQL ${version} has made the database, and this version of Gatehouse has another one: start the Gatehouse that fits, and take its data along with a dump.`,
  ],
  [
    /wrong ownership|Permission denied|Operation not permitted/,
    (folder) =>
      `Files in it belong to another user: give all of ${folder} to the user of the service (chown -R).`,
  ],
  [
    /Cannot allocate memory|shared memory segment/,
    () =>
      'The system refuses it memory (128 MB of shared buffers): raise the limit of memory, or end other programs.',
  ],
]

function remedyOf(folder: string, log: string): string | undefined {
  // On a full disk there is no room for the log either.
  const text = isFull(folder) ? `${log}\nNo space left on device` : log
  for (const [pattern, says] of REMEDIES) {
    const found = pattern.exec(text)
    if (found !== null) return says(folder, found)
  }
  return undefined
}

/** The least that a start writes, bytes. */
const LEAST = 65_536

function isFull(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize < LEAST
}
