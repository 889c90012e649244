import { spawn } from 'node:child_process'
import { Socket } from 'node:net'
import { killWithChildren } from './processes.ts'
import { ENVIRONMENT, type SystemUser } from './system-user.ts'

type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

export type GuardedProcess = {
  readonly pid: number
  readonly exited: Promise<Exit>
  /** Sends SIGINT: a fast shutdown of postgres, and of initdb after it has cleaned up. Kills the process after that many milliseconds. */
  end(within: number): Promise<void>
  /** Keeps this process running until the child has ended; so it is at first. `release` undoes it. */
  hold(): void
  release(): void
}

/**
 * Becomes the command. A watcher process sends it SIGINT when descriptor 3, whose other end only this process
 * has, closes without a line: then this process has died. Advantages over prctl(PR_SET_PDEATHSIG): no
 * moment between fork and prctl in which the death is missed, not tied to the thread that forked, not cleared by
 * a change of user, and the same on macOS. The subshell in a subshell makes the watcher a child of init;
 * postgres treats the death of an unknown child as a crash.
 */
export const WATCHED = '( { read -r word <&3 || kill -INT $$ 2>/dev/null; } 4<&- & ); exec "$@" 3<&-'

/**
 * Starts a command that ends when this process ends, even by SIGKILL. Its output goes to an open file. The command and its children
 * hold `lock`, an open file, until they end.
 */
export function spawnGuarded(
  user: SystemUser,
  command: readonly string[],
  output: number,
  lock: number,
): Promise<GuardedProcess> {
  const child = spawn('/bin/sh', ['-c', WATCHED, 'gatehouse', ...user.wrap, ...command], {
    cwd: '/',
    env: ENVIRONMENT,
    stdio: ['ignore', output, output, 'pipe', lock],
    // A session of its own: Ctrl-C at a terminal goes to this process, which then stops the server in order.
    detached: true,
    ...user.spawnAs,
  })
  const guard = child.stdio[3]
  // The watcher may have ended before the line arrives.
  guard?.on('error', () => {})
  if (guard instanceof Socket) guard.unref()
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      // The line keeps the watcher from signalling a process id that another process may get.
      if (guard instanceof Socket) guard.end('done\n')
      resolve({ code, signal })
    })
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('spawn', () => {
      resolve({
        pid: child.pid ?? -1,
        exited,
        async end(within) {
          child.kill('SIGINT')
          const late = setTimeout(() => void killWithChildren(child.pid ?? -1), within)
          await exited
          clearTimeout(late)
        },
        hold: () => child.ref(),
        release: () => child.unref(),
      })
    })
  })
}
