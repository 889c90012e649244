import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'
import { SYSTEM } from '#kernel/audit/origin.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import { clockOf, connectOnce } from '#kernel/db/connect.ts'
import { lockFolder } from '#kernel/db/embedded/folder-lock.ts'
import { waitForPrevious } from '#kernel/db/embedded/previous-server.ts'
import {
  RESTORE_WORK,
  removeCopies,
  replaceData,
  settleReplacement,
} from '#kernel/db/embedded/replacement.ts'
import { startEmbedded } from '#kernel/db/embedded.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { type InstallationCheck, seeInstallation } from '#kernel/db/installation.ts'
import { scramVerifier } from '#kernel/db/scram.ts'
import { secureRandom } from '#kernel/random.ts'
import { unpackArchive } from './archive.ts'
import { ArchiveError } from './archive-error.ts'
import { forget, forgetOfClients } from './forget.ts'
import type { ArchiveFacts } from './make-archive.ts'
import { becomeOwnInstallation, type RestoredFile } from './own-installation.ts'
import { openStream } from './sealed-stream.ts'

type RestoreOptions = InstallationCheck & {
  readonly archive: AsyncIterable<Buffer>
  /** Of the archive: its file, or s3://bucket/key. */
  readonly location: string
  /** The embedded server's folder, `data_dir/postgres`. */
  readonly dir: string
  /** The superuser's password that the folder gets. */
  readonly password: () => string
  /** Name of the control database. */
  readonly control: string
  /** Whether a database that is there may be replaced. It is renamed, never removed. */
  readonly replace: boolean
  /** Called when the archive is known to be whole and this secret's, before anything is replaced. */
  readonly onVerified: () => Promise<void>
  readonly report: (step: string) => void
  readonly onBytes: (bytes: number) => void
}

type RestoreOutcome = {
  readonly facts: ArchiveFacts
  /** A sentence for each thing of callers that was removed, or could not be. */
  readonly warnings: readonly string[]
  /** Where the former database is now. */
  readonly former: string | undefined
}

/**
 * Restores an archive of the embedded server, while no server runs. Everything happens in a work folder beside the data: the archive is
 * verified to its end, PostgreSQL recovers the copy, it is checked to be this secret's, and what must not live on is deleted. Only then are
 * folders renamed (`replacement.ts`).
 */
export async function restoreArchive(options: RestoreOptions): Promise<RestoreOutcome> {
  const { dir, replace } = options
  const data = path.join(dir, 'data')
  await mkdir(dir, { recursive: true, mode: 0o700 })
  // Held to the end: no server starts on the folder meanwhile.
  await using _lock = await lockFolder(dir, options.report, undefined)
  await waitForPrevious(dir, options.report, undefined)
  await settleReplacement(dir, options.report)
  if (existsSync(data) && !replace) throw occupied(dir)
  await removeCopies(dir)
  const work = await mkdtemp(path.join(dir, RESTORE_WORK))
  try {
    const unpacked = await unpack(options, work)
    const { facts } = unpacked
    const warnings = await recover(options, work, unpacked)
    await options.onVerified()
    return { facts, warnings, former: await replaceData(dir, path.join(work, 'data')) }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

const occupied = (dir: string) =>
  new ArchiveError(
    `There is a database in ${path.dirname(dir)} already: name an empty folder with --data-dir, or add --replace, which keeps the ` +
      'former database beside the restored one.',
  )

type Unpacked = { readonly facts: ArchiveFacts; readonly password: string; readonly file: RestoredFile }

async function unpack(
  { secrets, archive, location, report, onBytes }: RestoreOptions,
  folder: string,
): Promise<Unpacked> {
  const hash = createHash('sha256')
  let size = 0
  const read = (bytes: Buffer) => {
    hash.update(bytes)
    size += bytes.length
    onBytes(bytes.length)
  }
  report('verify and unpack the archive')
  let facts: ArchiveFacts | undefined
  let password: string | undefined
  await unpackArchive(openStream(secrets, observed(archive, read)), {
    folder,
    onText: async (name, text) => {
      if (name === 'postgres-password') password = text
      if (name !== 'backup.json') return
      facts = JSON.parse(text) as ArchiveFacts // authentic: written by `make-archive.ts`
      expectPlatform(facts)
    },
  })
  if (facts === undefined || password === undefined)
    throw new ArchiveError('The archive has no backup of an embedded server.')
  return { facts, password, file: { job: facts.job, location, size, sha256: hash.digest('hex') } }
}

async function* observed(
  archive: AsyncIterable<Buffer>,
  read: (bytes: Buffer) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of archive) {
    read(chunk)
    yield chunk
  }
}

function expectPlatform({ format, platform }: ArchiveFacts): void {
  const here = `${process.platform}-${process.arch}`
  if (format !== 1)
    throw new ArchiveError(`The archive has contents of form ${format}: use a newer version of Gatehouse.`)
  if (platform !== here)
    throw new ArchiveError(
      `The archive was made on ${platform}, and this is ${here}: restore it on the same kind of machine.`,
    )
}

/** Starts PostgreSQL on the copy, which recovers from the WAL in it, and stops it again in order. Returns warnings. */
async function recover(
  options: RestoreOptions,
  work: string,
  { password, file }: Unpacked,
): Promise<readonly string[]> {
  options.report('recover the database')
  const server = await startEmbedded({ dir: work, password })
  try {
    const url = server.url('postgres', password, options.control)
    await onConnection({ url, name: 'restore', deadline: 600_000 }, async (client) => {
      const { standing } = await seeInstallation(client, options)
      if (standing === undefined) throw new ArchiveError('The archive has no installation.')
      options.report('delete sessions and open work')
      await forget(client)
      await becomeOwnInstallation(client, { ...options, standing, file })
    })
    await recordRestore(url)
    const warnings = await forgetOfClients(server, password)
    // Last: the next connection needs it.
    const verifier = await scramVerifier(options.password())
    await onConnection({ url, name: 'restore' }, (client) =>
      client.query(`alter role postgres password '${verifier}'`),
    )
    return warnings
  } finally {
    await server.stop()
  }
}

/** The act, in the restored control database. */
export async function recordRestore(url: string): Promise<void> {
  const control = connectOnce(url)
  try {
    const recorder = {
      db: control.db,
      now: await clockOf(control.db),
      random: secureRandom,
      origin: { ...SYSTEM, actorId: 'cli' },
    }
    await recordAct(recorder, 'installation.restored', {})
  } finally {
    await control.close()
  }
}
