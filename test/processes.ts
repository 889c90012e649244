import { ChildProcess } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { killWithChildren } from '#kernel/db/embedded/processes.ts'

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Whether the program has ended, or could not be started. */
export const hasExited = ({ pid, exitCode, signalCode }: ChildProcess): boolean =>
  pid === undefined || exitCode !== null || signalCode !== null

/** Milliseconds. A program that has not ended by then is suspended or waits for something that will not come. */
const LONGEST = 300_000

/** Waits for the exit of a program that has been told to end, and kills one that does not: its file would wait forever. */
export async function exitOf(child: ChildProcess): Promise<void> {
  if (hasExited(child)) return
  const late = setTimeout(() => void killWithChildren(child.pid ?? -1), LONGEST)
  await once(child, 'exit')
  clearTimeout(late)
}

/**
 * Notes the programs that this process starts from now on. The function kills those that still run, with their children, and returns their
 * command lines. A test that times out while it starts a program has not registered how to stop it.
 */
export function noteStartedPrograms(): () => Promise<readonly string[]> {
  const running = new Set<ChildProcess>()
  subscribe('child_process', (message) => {
    const child = message !== null && typeof message === 'object' && 'process' in message && message.process
    if (!(child instanceof ChildProcess)) return
    running.add(child)
    child.once('exit', () => running.delete(child))
    child.once('error', () => hasExited(child) && running.delete(child))
  })
  return async () => {
    const left = [...running].filter((child) => !hasExited(child))
    running.clear()
    await Promise.all(left.map((child) => killWithChildren(child.pid ?? -1)))
    return left.map(({ spawnargs }) => spawnargs.join(' '))
  }
}
