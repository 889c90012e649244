import { spawn } from 'node:child_process'
import { Socket } from 'node:net'
import { killWithChildren } from './processes.ts'
import { ENVIRONMENT, type SystemUser } from './system-user.ts'

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

export type Guarded = {
  readonly pid: number
  readonly exited: Promise<Exit>
  /** SIGINT: a fast shutdown to postgres, tidying up to initdb. What has not ended within that many milliseconds is killed. */
  end(within: number): Promise<void>
  /** Whether waiting for it is reason enough for this process not to end by itself; it is at first. */
  hold(): void
  release(): void
}

/**
 * Becomes the command, and leaves a watcher behind that sends it SIGINT when descriptor 3, whose other end only we
 * hold, closes without a word: that is when we died, of whatever cause. Against prctl(PR_SET_PDEATHSIG): no
 * moment between fork and prctl in which our death goes unseen, not tied to the thread that forked, not cleared by
 * a change of user, and the same on macOS. The subshell inside the subshell makes the watcher nobody's child;
 * postgres treats the death of a child that it does not know as a crash.
 */
const WATCHED = '( { read -r word <&3 || kill -INT $$ 2>/dev/null; } 4<&- & ); exec "$@" 3<&-'

/**
 * Starts a command that ends when this process does, even by kill -9; its output goes to an open file. It and its children hold
 * `lock`, an open file, for as long as they live.
 */
export function spawnGuarded(
  user: SystemUser,
  command: readonly string[],
  output: number,
  lock: number,
): Promise<Guarded> {
  const child = spawn('/bin/sh', ['-c', WATCHED, 'gatehouse', ...user.wrap, ...command], {
    cwd: '/',
    env: ENVIRONMENT,
    stdio: ['ignore', output, output, 'pipe', lock],
    // A session of its own: Ctrl-C at a terminal is for us, who then stop the server in good order.
    detached: true,
    ...user.spawnAs,
  })
  const guard = child.stdio[3]
  // The watcher can be gone before the word arrives, and then there is nobody to tell.
  guard?.on('error', () => {})
  if (guard instanceof Socket) guard.unref()
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      // The word that keeps the watcher from signalling a process id that may soon be another's.
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
