import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { ENVIRONMENT } from './system-user.ts'

/** What a server writes into its `postmaster.pid`; the file beside its socket has the first lines of it. */
export type PidFile = {
  /** NaN when the power went off while the file was being written. */
  readonly pid: number
  /** As the server was told it: its `-D`. */
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
 * `left over` is what PostgreSQL gets wrong: it only asks whether the process id exists, and so takes a zombie, or
 * whoever got the same number after a reboot, for a running server and never starts again. The file of a dead
 * process is `gone` and left alone, because PostgreSQL then makes sure that no child of it lives on.
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

/** Whether the process exists. Somebody else's (EPERM) is none of ours: whoever works in a folder owns it. */
export function mayBeOurs(pid: number): boolean {
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
  // "pid (name) state …", and a name may hold anything.
  return { isZombie: stat.charAt(stat.lastIndexOf(')') + 2) === 'Z', command: command.replaceAll('\0', ' ') }
}

/** For systems without /proc. */
export async function describeByPs(pid: number): Promise<ProcessFacts | undefined> {
  const ps = promisify(execFile)('ps', ['-ww', '-o', 'stat=,args=', '-p', `${pid}`], { env: ENVIRONMENT })
  // It exits with 1 when there is no such process.
  const line = await ps.then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
  if (line === '') return undefined
  return { isZombie: line.startsWith('Z'), command: line.slice(line.indexOf(' ') + 1) }
}

/** ESRCH: a file of /proc whose process ended after it was opened. */
async function unlessGone<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return undefined
    throw error
  })
}
