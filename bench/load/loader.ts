import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import type { Order, Result } from './load.ts'

/** A load process, which performs one order after the other with code that stays compiled. */
export type Loader = {
  /**
   * Lets it run before all programs of the usual priority, as a client with a processor of its own would: otherwise its own waits for a
   * processor count as the service's latency. False where the machine does not allow it.
   */
  goFirst(): boolean
  perform(order: Order): Promise<Result>
  end(): Promise<void>
}

/**
 * Our own program rather than wrk: everyone who has the repository has it in the same version, one program measures both the maximum and the
 * latency at a constant rate from the intended time of sending, and reports how late it was itself. It costs more processor time a request
 * than wrk does, which is shown beside each figure.
 */
export function startLoader(): Loader {
  const child = fork(path.join(import.meta.dirname, 'program.ts'), { serialization: 'advanced' })
  const ended = once(child, 'exit')
  return {
    goFirst() {
      try {
        execFileSync('chrt', ['--all-tasks', '--fifo', '--pid', '1', String(child.pid)], { stdio: 'ignore' })
        return true
      } catch {
        return false
      }
    },
    async perform(order) {
      const answer = once(child, 'message')
      child.send(order)
      const [result] = await Promise.race([answer, ended])
      // The program sends nothing else; an exit code is not an object.
      if (typeof result !== 'object' || result === null) throw new Error('the load process ended')
      return result as Result
    },
    async end() {
      child.disconnect()
      await ended
    },
  }
}
