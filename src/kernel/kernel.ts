import type { Clock } from './clock.ts'
import type { Config } from './config/config.ts'
import type { Coherence } from './db/coherence.ts'
import type { Db } from './db/connect.ts'
import type { ControlServer } from './db/control-server.ts'
import type { PipelinedStatements } from './db/pipelined-statements.ts'
import type { Disk } from './disk.ts'
import type { EventData, EventName, Events } from './events.ts'
import type { Limits } from './http/limits.ts'
import type { Outbound } from './http/outbound.ts'
import type { Jobs } from './jobs.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Random } from './random.ts'
import type { Secrets } from './secrets.ts'
import type { WorkQueue } from './work-queue.ts'

/** One way to the control database; `ping` throws when nothing answers. */
export type ControlPath = { readonly name: string; ping(): Promise<void> }

/** Everything a verb may need, handed to it as its first argument. */
export type Kernel = {
  readonly config: Config
  /** The control database, or inside `atomically` the transaction on it. */
  readonly db: Db
  readonly pipelined: PipelinedStatements
  /** Undefined when it has never answered. */
  readonly controlServer: () => Promise<ControlServer | undefined>
  /** Runs what keeps a processor busy, a bounded number at once. */
  readonly hashQueue: WorkQueue
  /** The same for password hashes of other systems, which may cost a hundred times as much as ours: one at a time. */
  readonly foreignHashQueue: WorkQueue
  readonly coherence: Coherence
  /** For those who ask whether the control database can be reached. */
  readonly controlPaths: readonly ControlPath[]
  /** The control database's time. Whatever is written to a shared row or compared with one is judged by it. */
  readonly now: Clock
  /** Milliseconds by which it is ahead of this machine's clock. */
  readonly drift: () => number
  readonly random: Random
  readonly secrets: Secrets
  readonly jobs: Jobs
  readonly events: Events
  readonly limits: Limits
  /** Requests to addresses that somebody else chose. */
  readonly outbound: Outbound
  readonly metrics: Metrics
  /** Whether there is room left to write. */
  readonly disk: Disk
  readonly log: Log
  /** Origin that links, cookies and origin checks are built from; known once the port is. */
  readonly publicUrl: () => string
  /** Runs when what the verb is part of has committed: at once outside a transaction, never after a rollback. */
  readonly afterCommit: (work: () => void) => void
}

/**
 * Runs the work in one transaction, with a kernel bound to it. Give the parameter the outer kernel's name, so that no
 * statement slips outside. Inside a transaction it joins that one.
 */
export async function atomically<T>(kernel: Kernel, work: (kernel: Kernel) => Promise<T>): Promise<T> {
  if (kernel.db.isTransaction) return work(kernel)
  const later: (() => void)[] = []
  const result = await kernel.db
    .transaction()
    .execute((db) => work({ ...kernel, db, afterCommit: (task) => void later.push(task) }))
  for (const task of later) task()
  return result
}

/** Says that something happened; subscribers hear of it once it is committed. */
export function emitAfterCommit<Name extends EventName>(
  kernel: Kernel,
  name: Name,
  data: EventData[Name],
): void {
  kernel.afterCommit(() => kernel.events.emit(name, data))
}
