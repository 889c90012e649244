import { spawn } from 'node:child_process'
import { constants, type FileHandle, open } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedServerError } from './error.ts'
import { alreadyRuns, findServer, NOTICE_MS, SHUTDOWN_MS } from './previous-server.ts'
import { ENVIRONMENT } from './system-user.ts'

/**
 * An flock on `<folder>/lock`. PostgreSQL's own lock file contains a process id, which has no meaning in another container on the
 * same volume; this lock is on the file itself, in every namespace and, over NFS, on every machine. It belongs to the
 * open file, so that every process with the inherited descriptor holds it: all processes of the server, also after this process has been
 * killed. The file is never removed.
 */
type FolderLock = FileHandle

/** Longest wait for a lock whose server cannot be seen from this process. */
const UNSEEN_MS = 5_000

const RETRY_MS = 50

/** Takes the lock. Waits for a server that is about to end; any other holder is an error that names the folder. */
export async function lockFolder(
  folder: string,
  report: (step: string) => void,
  signal: AbortSignal | undefined,
): Promise<FolderLock> {
  const since = performance.now()
  for (let round = 0; ; round++) {
    const lock = await tryLock(folder)
    if (lock) return lock
    const { file, state } = await findServer(folder)
    const seen = state === 'running' ? file : undefined
    const patience = file?.status === 'stopping' ? SHUTDOWN_MS : seen ? NOTICE_MS : UNSEEN_MS
    if (performance.now() - since > patience) throw seen ? alreadyRuns(folder, seen) : unseen(folder)
    if (round === 0) report('wait for the previous server')
    await sleep(RETRY_MS, undefined, { signal })
  }
}

const unseen = (folder: string) =>
  new EmbeddedServerError(
    `A PostgreSQL server already runs on ${folder}: another process holds its lock, perhaps in another container or on another ` +
      'machine. Stop that one, or give this one another folder (server.data_dir).',
  )

/** The lock, or undefined while another open file holds it. */
async function tryLock(folder: string): Promise<FolderLock | undefined> {
  const file = path.join(folder, 'lock')
  // NFS grants an exclusive lock only on a writable file. O_NOFOLLOW: another user may own the folder.
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW
  if (process.platform === 'darwin') return openLocked(file, flags)
  const handle = await open(file, flags, 0o600)
  try {
    if (await lockFile(handle.fd, file)) return handle
  } catch (error) {
    await handle.close()
    throw error
  }
  await handle.close()
  return undefined
}

/** O_EXLOCK: open(2) of macOS takes the lock itself. */
async function openLocked(file: string, flags: number): Promise<FileHandle | undefined> {
  const O_EXLOCK = 0x20
  return open(file, flags | O_EXLOCK | constants.O_NONBLOCK, 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EAGAIN') return undefined
    throw error
  })
}

/**
 * Programs that call flock(2) for an inherited descriptor, since Node has no call for it. They exit with 0 when they have taken the
 * lock and with 1 when it is taken. Nearly every system that the binaries run on has util-linux; without it, Node
 * calls the C library, ten times slower (40 ms).
 */
export const LOCKERS: readonly (readonly string[])[] = [
  // Short options, for BusyBox.
  ['flock', '-x', '-n', '3'],
  [
    process.execPath,
    '--experimental-ffi',
    '--no-warnings',
    '--eval',
    `const { functions } = require('node:ffi').dlopen(null, { flock: { return: 'int32', arguments: ['int32', 'int32'] } })
     process.exitCode = functions.flock(3, 2 | 4) === 0 ? 0 : 1`,
  ],
]

/** Locks the file of the descriptor with the first program that can be run; false when it is locked already. */
export async function lockFile(fd: number, name: string, lockers = LOCKERS): Promise<boolean> {
  const tried: string[] = []
  for (const command of lockers) {
    const { code, said } = await run(command, fd)
    if (code === 0 || code === 1) return code === 0
    tried.push(`${command[0]}: ${said}`)
  }
  throw new EmbeddedServerError(
    `The data folder cannot be locked against a second server, and without that it is not safe to use (${name}; ` +
      `${tried.join('; ')}). Install util-linux, or put the folder on a file system with locks, or set DATABASE_URL.`,
  )
}

type Outcome = { readonly code: number | null; readonly said: string }

function run([program = '', ...args]: readonly string[], fd: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: '/',
      env: ENVIRONMENT,
      stdio: ['ignore', 'ignore', 'pipe', fd],
    })
    let said = ''
    child.stderr?.on('data', (chunk) => {
      said += chunk
    })
    child.once('error', (error) => resolve({ code: null, said: error.message }))
    child.once('close', (code) => resolve({ code, said: said.trim() }))
  })
}
