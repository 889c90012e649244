import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { ENVIRONMENT } from './system-user.ts'

/** Sends SIGKILL to a process and its children. The process is stopped first, so that it starts no further children. */
export async function killWithChildren(pid: number): Promise<void> {
  send(pid, 'SIGSTOP')
  for (const child of await childrenOf(pid)) send(child, 'SIGKILL')
  send(pid, 'SIGKILL')
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended already.
  }
}

export async function childrenOf(pid: number): Promise<readonly number[]> {
  const pairs = await (process.platform === 'linux' ? pairsByProc() : pairsByPs())
  return pairs.flatMap(([child, parent]) => (parent === pid ? [child] : []))
}

type Pair = readonly [pid: number, parent: number]

async function pairsByProc(): Promise<readonly Pair[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  return Promise.all(
    pids.map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
      // "pid (name) state parent …", and a name may contain any character.
      const [, parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return [Number(pid), Number(parent)] as const
    }),
  )
}

/** For systems without /proc. */
async function pairsByPs(): Promise<readonly Pair[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='], { env: ENVIRONMENT })
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([pid = 0, parent = 0]) => [pid, parent])
}
