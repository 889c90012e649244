import { spawn } from 'node:child_process'
import { constants, type FileHandle, open } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedServerError } from './error.ts'
import { alreadyRuns, findServer, NOTICE_MS, SHUTDOWN_MS } from './previous-server.ts'
import { ENVIRONMENT } from './system-user.ts'

/**
 * An flock on `<folder>/lock`. PostgreSQL's own lock file holds a process id, which means nothing in another container on the
 * same volume; this one hangs on the file itself, in every namespace and, over NFS, on every machine. It belongs to the
 * open file, so whatever inherits the descriptor holds it too: the server with all of its processes, also when we have been
 * killed. The file is never removed.
 */
export type FolderLock = FileHandle

/** How long another process may keep the lock while nothing of its server can be seen from here. */
const UNSEEN_MS = 5_000

const RETRY_MS = 50

/** Takes the lock. A server that is about to end is waited for; any other holder is an error that names the folder. */
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
  // NFS grants an exclusive lock only to who may write. No symbolic link: root may have handed the folder over.
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
 * Programs that call flock(2) for a descriptor that they inherit, since Node has no call for it. Each exits with 0 when it has the
 * lock and with 1 when another has it. util-linux is on every system that the binaries run on, as a rule; where it is missing, Node
 * calls the C library, ten times as slowly (40 ms).
 */
export const LOCKERS: readonly (readonly string[])[] = [
  // Short options: those of BusyBox have no others.
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

/** Whether the file behind the descriptor is locked now, by the first of the programs that can be run. */
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
