import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { ENVIRONMENT } from './system-user.ts'

/** The content of a server's `postmaster.pid`; the file next to its socket has the same first lines. */
export type PidFile = {
  /** NaN after a power cut while the file was being written. */
  readonly pid: number
  /** The server's `-D`. */
  readonly dataFolder: string
  readonly status: string
}

export async function readPidFile(file: string): Promise<PidFile | undefined> {
  const text = await unlessGone(readFile(file, 'utf8'))
  if (text === undefined) return undefined
  const [pid = '', dataFolder = '', , , , , , status = ''] = text.split('\n')
  return { pid: Number.parseInt(pid, 10), dataFolder, status: status.trim() }
}

/**
 * `left over` is a file that PostgreSQL misjudges: it only checks whether the process id exists, and so takes a zombie, or
 * another process that got the same id after a reboot, for a running server and never starts again. The file of a dead
 * process is `gone` and stays, because PostgreSQL then checks that no child of that process is alive.
 */
export async function stateOf(file: PidFile | undefined): Promise<'gone' | 'left over' | 'running'> {
  if (!file) return 'gone'
  if (Number.isNaN(file.pid)) return 'left over'
  if (!mayBeOurs(file.pid)) return 'gone'
  const owner = await describeProcess(file.pid)
  if (!owner) return 'gone'
  return owner.isZombie || !owner.command.includes(`-D ${file.dataFolder}`) ? 'left over' : 'running'
}

export async function removeLeftOver(path: string): Promise<void> {
  if ((await stateOf(await readPidFile(path))) === 'left over') await rm(path, { force: true })
}

/** Whether the process exists. A process of another user (EPERM) is no server on this folder, which belongs to our user. */
function mayBeOurs(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

type ProcessFacts = { readonly isZombie: boolean; readonly command: string }

async function describeProcess(pid: number): Promise<ProcessFacts | undefined> {
  return process.platform === 'linux' ? describeByProc(pid) : describeByPs(pid)
}

async function describeByProc(pid: number): Promise<ProcessFacts | undefined> {
  const stat = await unlessGone(readFile(`/proc/${pid}/stat`, 'utf8'))
  const command = await unlessGone(readFile(`/proc/${pid}/cmdline`, 'utf8'))
  if (stat === undefined || command === undefined) return undefined
  // "pid (name) state …", and a name may contain any character.
  return { isZombie: stat.charAt(stat.lastIndexOf(')') + 2) === 'Z', command: command.replaceAll('\0', ' ') }
}

/** For systems without /proc. */
export async function describeByPs(pid: number): Promise<ProcessFacts | undefined> {
  const ps = promisify(execFile)('ps', ['-ww', '-o', 'stat=,args=', '-p', `${pid}`], { env: ENVIRONMENT })
  // Exits with 1 when there is no such process.
  const line = await ps.then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
  if (line === '') return undefined
  return { isZombie: line.startsWith('Z'), command: line.slice(line.indexOf(' ') + 1) }
}

/** ESRCH: the process of an open file in /proc has ended. */
async function unlessGone<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  })
}
