import type { ServiceDatabases } from '../open-databases.ts'

/** Database addresses for the workers. They contain passwords, so they are sent over the process channel, not in the environment. */
export type WorkerDatabases = Pick<
  ServiceDatabases,
  'controlUrl' | 'pooler' | 'builtIn' | 'callerRoles' | 'logging'
>

export type ToWorker =
  | { readonly databases: WorkerDatabases }
  /** Heartbeat: the worker replies with the same message. */
  | 'beat'
  /** Asks for the worker's own metrics. */
  | 'collect'
  /** Metrics of all workers, in reply to a worker's `metrics` message. */
  | { readonly metrics: string }
  /** Asks the worker to exit within this many milliseconds. */
  | { readonly stop: number }

export type ToPrimary =
  | 'hello'
  | 'beat'
  | 'metrics'
  | { readonly collected: object[] }
  | { readonly listening: number }
