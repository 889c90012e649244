import type { Deadline } from '#kernel/shutdown.ts'

/** The running service: this process, or several workers that share the port. */
export type Running = {
  /** Resolves once requests are accepted. */
  readonly port: Promise<number>
  stop(deadline: Deadline): Promise<void>
}
