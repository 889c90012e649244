import { createHash, hash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { announceRestore, databaseOf } from '#databases/clients/restoring.ts'
import { fail } from '#gateway/errors.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { chunksOf } from '../archive/sealed-stream.ts'
import { findBackup } from '../backups.ts'
import type { JobControl } from '../jobs/lease.ts'
import { type JobRow, setDatabase } from '../jobs/store.ts'
import type { OpenBackup } from '../location/backup-store.ts'
import { storeOf } from '../location/location.ts'
import { type BackupSources, programFor, type Source, sourceOf } from '../sources.ts'
import { selectionOf } from './left-out.ts'
import { databaseArgument, libpqEnvironment } from './libpq-environment.ts'
import { watchLocks } from './lock-watch.ts'
import type { Program } from './programs.ts'
import {
  connectionName,
  endedOutcome,
  findSession,
  forgetFormerState,
  noteTransaction,
} from './restore-transaction.ts'
import { ProgramError, type RunningProgram, runProgram, send } from './run-program.ts'

/**
 * Replaces the data of a client by that of a dump, in one transaction. The client refuses writes from the moment at which the job runs,
 * and so do other clients of its database (`databases/clients/restoring.ts`). Streams are ended and writes that
 * have begun finish first: the restore waits for their locks, and for those of others, up to `backups.lock_timeout`.
 */
export async function restoreDump(
  kernel: Kernel,
  sources: BackupSources,
  job: JobRow,
  running: JobControl,
): Promise<Record<string, never>> {
  const backup = await findBackup(kernel, job.sourceId ?? '')
  const source = await sourceOf(kernel, sources, job.clientName)
  if (source.format === 'archive') throw fail('restore_needs_command')
  const program = await programFor(kernel, sources, 'pg_restore', source.major)
  const file = await storeOf(kernel, backup.location).open(backup.location)
  if (file === undefined) throw fail('backup_file_missing')
  try {
    running.report('checking the file')
    if (file.size !== backup.size) throw changed()
    const blocks = await checkedBlocks(file, backup.sha256, running.signal)
    const database = await databaseOf(source.client)
    await atomically(kernel, ({ db }) => setDatabase(db, job.id, database))
    running.report('restoring')
    const restoring = { source, program, job, running, file, blocks }
    await withSelection(kernel, restoring, (selected) => replaceData(kernel, restoring, selected))
    running.report('forgetting idempotency keys', 0.99)
    await forgetFormerState(kernel, source).catch((cause: unknown) => {
      throw new ProgramError(KEYS_LEFT, { cause })
    })
  } finally {
    await file.close()
  }
  return {}
}

type Restore = {
  readonly source: Extract<Source, { format: 'dump' }>
  readonly program: Program
  readonly job: JobRow
  readonly running: JobControl
  readonly file: OpenBackup
  readonly blocks: readonly string[]
}

/** `work` gets the parameters that leave out entries of the dump. Those of others are logged. */
async function withSelection(
  { log }: Kernel,
  { source: { url }, program, job, running, file, blocks }: Restore,
  work: (parameters: readonly string[]) => Promise<void>,
): Promise<void> {
  const { signal } = running
  const dump = bytesOf(readAgain(file, blocks, signal))
  const selection = await selectionOf({ program, url, dump, signal })
  if (selection === undefined) return work([])
  const { list, leftOut } = selection
  if (leftOut.length > 0)
    log.warn(
      { event: 'restore_left_out', job_id: job.id, client: job.clientName, entries: leftOut },
      'what only a superuser can restore is left as it is',
    )
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-restore-'))
  try {
    const listed = path.join(folder, 'list')
    await writeFile(listed, list, { mode: 0o600 })
    await work([`--use-list=${listed}`])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Throws unless the transaction of the program was committed. */
async function replaceData(
  kernel: Kernel,
  { source: { url, client }, program, job, running, file, blocks }: Restore,
  selected: readonly string[],
): Promise<void> {
  const abandoned = new AbortController()
  const done = new AbortController()
  const waiting = { url, name: connectionName(job.id), limit: kernel.config.backups.lock_timeout }
  void watchLocks({ ...waiting, signal: done.signal }, (reason) => abandoned.abort(reason))
  const environment: Record<string, string> = {
    ...libpqEnvironment(url, program.major),
    PGAPPNAME: connectionName(job.id),
  }
  const parameters = [...RESTORE, ...selected, databaseArgument(environment.PGDATABASE ?? '')]
  const signal = AbortSignal.any([running.signal, abandoned.signal])
  const restoring = runProgram(program, parameters, environment, signal)
  const session = findSession(url, connectionName(job.id), restoring)
  let transaction: string | undefined
  try {
    await feed(restoring, file, blocks, running, async () => {
      transaction = await noteTransaction(kernel, job.id, url, { program: restoring, session })
    })
  } catch (error) {
    // Without effect on a program that has ended. Until it has, it holds locks on the tables, so the job does not end before it.
    abandoned.abort(error)
    await restoring.ended.catch(() => {})
    const outcome = transaction === undefined ? 'aborted' : await endedOutcome(url, transaction)
    if (outcome === 'unknown') await announceRestore(kernel, client)
    if (outcome !== 'committed') throw error
  } finally {
    done.abort()
  }
}

/** Bytes between two digests. */
const BLOCK = 1_048_576

const digestOf = (block: Buffer): string => hash('sha256', block, 'base64')

/** Reads all of a backup, and compares its SHA-256. Returns that of each block, because the file may be another one when it is read again. */
async function checkedBlocks(
  file: OpenBackup,
  sha256: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const whole = createHash('sha256')
  const blocks: string[] = []
  for await (const { bytes } of chunksOf(file.content(signal), BLOCK)) {
    signal.throwIfAborted()
    whole.update(bytes)
    blocks.push(digestOf(bytes))
  }
  if (whole.digest('hex') !== sha256) throw changed()
  return blocks
}

/** Yields no block that was not checked. */
async function* readAgain(file: OpenBackup, blocks: readonly string[], signal: AbortSignal) {
  for await (const block of chunksOf(file.content(signal), BLOCK)) {
    signal.throwIfAborted()
    const { number, isLast, bytes } = block
    if (digestOf(bytes) !== blocks[number] || isLast !== (number === blocks.length - 1)) throw changed()
    yield block
  }
}

async function* bytesOf(blocks: ReturnType<typeof readAgain>): AsyncGenerator<Buffer> {
  for await (const { bytes } of blocks) yield bytes
}

const changed = () =>
  new ProgramError(
    'The file of the backup is not the one that was written: its length or its SHA-256 differs.',
  )

const KEYS_LEFT =
  'The data was replaced, but idempotency keys of before were not deleted: their requests get the former answers for a day. Drop the tables ' +
  'public.service_idempotency and public.service_changes_state, or restore again.'

const RESTORE = [
  '--format=custom',
  '--clean',
  '--if-exists',
  '--no-owner',
  '--single-transaction',
  '--exit-on-error',
  '--no-password',
]
/**
 * The program reads no block that was not checked: of another dump it would commit what it reads before the end of the file. The last byte is
 * sent only if the transaction is known: the program cannot commit before it. Otherwise the caller ends the program, and the transaction is
 * rolled back.
 */
async function feed(
  { stdin, ended }: RunningProgram,
  file: OpenBackup,
  blocks: readonly string[],
  running: JobControl,
  beforeCommit: () => Promise<void>,
): Promise<void> {
  let last: Buffer = Buffer.alloc(0)
  for await (const { number, isLast, bytes } of readAgain(file, blocks, running.signal)) {
    // The program has failed, and the rest of the file is not needed.
    if (stdin.destroyed) return ended
    if (isLast) last = bytes.subarray(-1)
    await send(stdin, isLast ? bytes.subarray(0, -1) : bytes)
    running.report('restoring', number / blocks.length)
  }
  await beforeCommit()
  if (stdin.destroyed) return ended
  running.signal.throwIfAborted()
  await send(stdin, last)
  stdin.end()
  await ended
}
