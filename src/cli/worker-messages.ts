import type { PipelinesFile } from '#gateway/pipelines/pipelines-file.ts'
import type { ServiceDatabases } from '#startup/open-databases.ts'

/** Database addresses for the workers. They contain passwords, so they are sent over the process channel, not in the environment. */
type WorkerDatabases = Pick<
  ServiceDatabases,
  'controlUrl' | 'pooler' | 'builtIn' | 'callerRoles' | 'logging' | 'loggingDatabase' | 'embedded'
>

/** Start message for a worker. `port` is the port that an earlier worker has chosen, if any free port is allowed. */
export type WorkerStart = {
  readonly databases: WorkerDatabases
  readonly port: number | undefined
  readonly pipelines: PipelinesFile | undefined
}

export type ToWorker =
  | WorkerStart
  /** Heartbeat: the worker replies with the same message. */
  | 'beat'
  /** Asks for the worker's own metrics. */
  | 'collect'
  /** Metrics of all workers, in reply to a worker's `metrics` message. */
  | { readonly metrics: string }
  /** The pipelines file has been read again; null: there is none. */
  | { readonly usePipelines: PipelinesFile | null }
  /** Asks the worker to exit within this many milliseconds. */
  | { readonly stop: number }

export type ToPrimary =
  | 'hello'
  | 'beat'
  | 'metrics'
  | { readonly collected: object[] }
  | { readonly listening: number }
