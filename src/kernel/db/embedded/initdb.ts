import { existsSync } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { scramVerifier } from '../scram.ts'
import type { Binaries } from './binaries.ts'
import { EmbeddedServerError } from './error.ts'
import { spawnGuarded } from './guarded-process.ts'
import { logTail } from './log-file.ts'
import { findInterrupted, hasDatabase, settleReplacement, syncFolder } from './replacement.ts'
import { startFailure } from './start-failure.ts'
import { giveFiles, type SystemUser } from './system-user.ts'

export type Cluster = {
  readonly folder: string
  readonly user: SystemUser
  readonly binaries: Binaries
  /** Inherited by every process of the server. */
  readonly lock: FileHandle
  readonly password: string
  /** False for servers whose data may be lost in a power cut. */
  readonly isDurable: boolean
  readonly report: (step: string) => void
  readonly signal: AbortSignal | undefined
}

/** Time for initdb to clean up when it is interrupted, milliseconds. */
const INTERRUPT_MS = 5_000

/**
 * Creates `<folder>/data` if it is missing, by a rename of the complete folder: an initdb that was killed
 * leaves only a work folder, which the next start removes.
 */
export async function ensureData(cluster: Cluster): Promise<void> {
  const data = path.join(cluster.folder, 'data')
  await removeAbandoned(cluster.folder)
  await settleReplacement(cluster.folder, cluster.report)
  if (hasDatabase(cluster.folder)) return
  const interrupted = findInterrupted(cluster.folder)
  if (interrupted !== undefined) throw new EmbeddedServerError(interrupted.says)
  if (existsSync(data))
    throw new EmbeddedServerError(`The database in ${data} is damaged: its file PG_VERSION is missing.`)
  cluster.report('initdb')
  const work = path.join(cluster.folder, `init-${process.pid}`)
  await mkdir(work, { mode: 0o700 })
  try {
    await initdb(cluster, work)
    await rename(path.join(work, 'data'), data)
    if (cluster.isDurable) await syncFolder(cluster.folder)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function initdb(cluster: Cluster, work: string): Promise<void> {
  const { user, signal } = cluster
  const passwordFile = path.join(work, 'password')
  // The verifier replaces the password, which is so never in a file.
  await writeFile(passwordFile, await scramVerifier(cluster.password), { mode: 0o600, flag: 'wx' })
  await giveFiles(user, passwordFile, work)
  const logFile = path.join(work, 'log')
  await using log = await open(logFile, 'ax', 0o600)
  const command = [
    cluster.binaries.initdb,
    ...initdbArguments(cluster, path.join(work, 'data'), passwordFile),
  ]
  const running = await spawnGuarded(user, command, log.fd, cluster.lock.fd)
  const giveUp = () => void running.end(INTERRUPT_MS)
  signal?.addEventListener('abort', giveUp, { once: true })
  const { code } = await running.exited
  signal?.removeEventListener('abort', giveUp)
  signal?.throwIfAborted()
  if (code !== 0) throw startFailure('initdb failed', cluster, code, await logTail(logFile))
}

function initdbArguments(cluster: Cluster, data: string, passwordFile: string): string[] {
  return [
    `--pgdata=${data}`,
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--no-locale',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    // pg_trgm and the text search parser classify letters by the C library. macOS has no C.UTF-8.
    `--lc-ctype=${process.platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8'}`,
    '--data-checksums',
    '--no-instructions',
    ...(cluster.isDurable ? [] : ['--no-sync']),
  ]
}

/** Removes work folders of interrupted starts. The holder of the lock is the only process that works here. */
async function removeAbandoned(folder: string): Promise<void> {
  const abandoned = (await readdir(folder)).filter((name) => /^init-\d+$/.test(name))
  for (const name of abandoned) await rm(path.join(folder, name), { recursive: true, force: true })
}
