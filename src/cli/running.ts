import type { PipelinesFile } from '#gateway/pipelines/pipelines-file.ts'
import type { Deadline } from '#kernel/shutdown.ts'

/** The running service: this process, or several workers that share the port. */
export type Running = {
  /** Resolves once requests are accepted. */
  readonly port: Promise<number>
  /** The pipelines file has been read again. */
  usePipelines(file: PipelinesFile | undefined): void
  stop(deadline: Deadline): Promise<void>
}
