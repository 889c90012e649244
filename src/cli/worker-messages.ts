import type { PipelinesFile } from '#gateway/pipelines/pipelines-file.ts'
import type { Figures } from '#kernel/metrics.ts'
import type { ServiceDatabases } from '#startup/open-databases.ts'
import type { Finding } from './finding.ts'

/** Database addresses for the workers. They contain passwords, so they are sent over the process channel, not in the environment. */
type WorkerDatabases = Pick<
  ServiceDatabases,
  'controlUrl' | 'pooler' | 'builtIn' | 'callerRoles' | 'logging' | 'loggingDatabase' | 'embedded'
>

/** Start message for a worker. `port`: what the listening workers have asked for, or the port that they had. */
export type WorkerStart = {
  readonly databases: WorkerDatabases
  readonly port: number
  readonly pipelines: PipelinesFile | undefined
}

export type ToWorker =
  | WorkerStart
  /** Heartbeat: the worker replies with the same message. */
  | 'beat'
  /** Asks for the worker's own metrics. */
  | 'collect'
  /** Asks for the worker's own figures. */
  | 'report'
  /** Metrics of all workers, in reply to a worker's `metrics` message. */
  | { readonly metrics: string }
  /** Figures of all workers, in reply to `figures`. */
  | { readonly figures: readonly Figures[] }
  /** In reply to `doctor`. */
  | { readonly findings: readonly Finding[] }
  /** The pipelines file has been read again; null: there is none. */
  | { readonly usePipelines: PipelinesFile | null }
  /** Asks the worker to exit within this many milliseconds. */
  | { readonly stop: number }

export type ToPrimary =
  | 'hello'
  | 'beat'
  | 'metrics'
  | 'figures'
  | 'doctor'
  | { readonly collected: object[] }
  | { readonly reported: Figures }
  | { readonly listening: number }
