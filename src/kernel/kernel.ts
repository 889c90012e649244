import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { ANONYMOUS, type Origin } from './audit/origin.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config/config.ts'
import type { Coherence } from './db/coherence.ts'
import { isDeadlock } from './db/conflicts.ts'
import type { Db } from './db/connect.ts'
import type { ControlServer } from './db/control-server.ts'
import { type Written, watchStatements } from './db/followed-tables.ts'
import type { PipelinedStatements } from './db/pipelined-statements.ts'
import type { Disk } from './disk.ts'
import type { Events, RowsOf } from './events/outbox.ts'
import { EVENTS, type EventData, type EventName } from './events.ts'
import type { Hooks } from './hooks/hooks.ts'
import type { RateLimits } from './http/limits/limits.ts'
import type { Outbound } from './http/outbound/outbound.ts'
import type { Jobs } from './jobs.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { OpenStreams } from './open-streams.ts'
import { askingOutside, type OutsideAnswers } from './outside-answers.ts'
import type { Random } from './random.ts'
import type { Secrets } from './secrets.ts'
import type { WorkQueue } from './work-queue.ts'

/** One way to the control database; `ping` throws when nothing answers. */
export type ControlPath = { readonly name: string; ping(): Promise<void> }

/** Everything that a verb may need; its first argument. */
export type Kernel = {
  readonly config: Config
  /** The control database, or inside `atomically` the transaction on it. */
  readonly db: Db
  readonly pipelined: PipelinedStatements
  /** Identifies the server of the control database; undefined when it has never answered. */
  readonly controlServer: () => Promise<ControlServer | undefined>
  /** Runs password hashes, a bounded number at once. */
  readonly hashQueue: WorkQueue
  /** Runs password hashes of other systems, which may cost a hundred times as much as ours, one at a time. */
  readonly foreignHashQueue: WorkQueue
  readonly coherence: Coherence
  /** For checks whether the control database can be reached. */
  readonly controlPaths: readonly ControlPath[]
  /** The control database's time, for everything that is written to shared rows or compared with them. */
  readonly now: Clock
  /** Milliseconds by which it is ahead of this machine's clock. */
  readonly drift: () => number
  readonly random: Random
  readonly secrets: Secrets
  readonly jobs: Jobs
  readonly events: Events
  readonly limits: RateLimits
  /** Requests to addresses that callers or operators chose. */
  readonly outbound: Outbound
  /** Calls of the operator's service before a sign-up, a sign-in or a token. */
  readonly hooks: Hooks
  readonly metrics: Metrics
  /** Answers and reads that go on after their caller was let in. */
  readonly streams: OpenStreams
  /** Whether there is room left to write. */
  readonly disk: Disk
  readonly log: Log
  /** The actor, for the audit trail. */
  readonly origin: Origin
  /** For a request that a user's session operates by. The static admin key and the command line have none, and may do everything. */
  readonly operator?: OperatorSession
  /** The origin that links, cookies and origin checks use; known as soon as the port is. */
  readonly publicUrl: () => string
  /** The port that the service listens on, as soon as it does. */
  readonly port: () => number
  /** Runs after the commit of the transaction: at once outside of one, never after a rollback. */
  readonly afterCommit: (work: () => void) => void
  /** Of the transaction, inside of one. */
  readonly notes?: TransactionNotes
}

/** A session in place of the admin key (gateway.md 3). */
export type OperatorSession = {
  /** States again, in the transaction that acts, what the request was let in by. Locks the user's row. */
  prove(transaction: Pick<Kernel, 'db' | 'notes'>): Promise<void>
  /**
   * For a change that gives rights to somebody, or has their effects: throws unless the user's roles have them on the client (`*`: on every
   * client). To be called in that transaction. `goesOn`: the act has begun, with a recent proof where the rights need one.
   */
  expectRights(
    transaction: Pick<Kernel, 'db'>,
    client: string,
    rights: readonly string[],
    how?: { readonly goesOn?: boolean },
  ): Promise<void>
  /** The same for a change that shows accounts to somebody: it needs `user: [list]`. */
  expectToListUsers(transaction: Pick<Kernel, 'db'>): Promise<void>
  /** Whether it has that permission, as far as the request knows. For answers that name users. */
  readonly listsUsers: boolean
}

/** State of a transaction. */
export type TransactionNotes = Written & {
  /** Why nobody hears of it (`untold`). */
  untold: string | undefined
  /** Whether rows that come after those of users in the order of locks are locked (decision 41). */
  isPastUsers: boolean
  /** Ids of the users whose rows are locked. */
  readonly lockedUsers: Set<string>
  readonly outside: OutsideAnswers
  /** Of `atTheEnd`. */
  readonly last: (() => Promise<void>)[]
}

/**
 * Runs the work in one transaction, with a kernel bound to it. Give the parameter the outer kernel's name, so that no
 * statement slips outside. Inside a transaction it joins that one. When it resolves, no process answers from a cache what a statement of
 * the transaction has changed. After a deadlock the work runs again, and after an answer of another service too
 * (outside-answers.ts), so it must do nothing that a rollback does not undo.
 */
export async function atomically<K extends Transactional, T>(
  kernel: K,
  work: (kernel: K) => Promise<T>,
): Promise<T> {
  if (kernel.db.isTransaction) return work(kernel)
  return askingOutside(kernel, async (outside) => {
    for (let pause = PAUSE; ; pause *= 2) {
      try {
        return await inTransaction(kernel, work, outside)
      } catch (error) {
        if (!isDeadlock(error) || pause > MAX_PAUSE) throw error
      }
      await sleep(pause)
    }
  })
}

/**
 * Milliseconds before a transaction runs again after a deadlock: the other one gets the rows that it has waited for, and not this one again. Four
 * times at most.
 */
const [PAUSE, MAX_PAUSE] = [20, 160]

async function inTransaction<K extends Transactional, T>(
  kernel: K,
  work: (kernel: K) => Promise<T>,
  outside: OutsideAnswers,
): Promise<T> {
  const later: (() => void)[] = []
  const written = { isFollowed: false, isChanged: false, isTold: false }
  const notes: TransactionNotes = {
    ...written,
    untold: undefined,
    isPastUsers: false,
    lockedUsers: new Set<string>(),
    outside,
    last: [],
  }
  const afterCommit = (task: () => void): void => void later.push(task)
  const result = await kernel.db.transaction().execute(async (db) => {
    const done = await work({ ...kernel, db: db.withPlugin(watchStatements(notes)), afterCommit, notes })
    for (const task of notes.last) await task()
    return done
  })
  for (const task of later) task()
  if (notes.isFollowed) await kernel.coherence?.settle()
  return result
}

/**
 * Runs the work at the end of the transaction, in it; at once outside of one. For what a rollback does not undo: nothing runs in a run of the
 * transaction that ends with a failure or a question.
 */
export const atTheEnd = async ({ notes }: Pick<Kernel, 'notes'>, work: () => Promise<void>): Promise<void> =>
  notes === undefined ? work() : void notes.last.push(work)

/**
 * A part of a transaction that the rest may go on without: when it throws, what it has written is undone. What it has noted is not: rows count
 * as locked, changed or untold, and what it has left to the end or to the commit runs.
 */
export async function undoneByThrow<T>({ db }: Pick<Kernel, 'db'>, part: () => Promise<T>): Promise<T> {
  await sql`savepoint part`.execute(db)
  try {
    const result = await part()
    await sql`release savepoint part`.execute(db)
    return result
  } catch (error) {
    await sql`rollback to savepoint part`.execute(db)
    throw error
  }
}

/** A command that no cache holds anything for has no coherence. */
type Transactional = Pick<Kernel, 'db'> & Partial<Pick<Kernel, 'coherence'>>

/** The same kernel for one caller. */
export const withOrigin = (kernel: Kernel, origin: Origin): Kernel => ({ ...kernel, origin })

/** The same kernel for a caller who has proven to be this user by other means than a session. A known actor stays. */
export const actingAsUser = (kernel: Kernel, actorId: string): Kernel =>
  kernel.origin.actorId === ANONYMOUS ? withOrigin(kernel, { ...kernel.origin, actorId }) : kernel

/**
 * Emits an event of the catalogue. In a transaction it is written to the outbox of the webhooks with it, else before this resolves, which
 * must be after the client's commit and before the answer. Nothing is written when no webhook matches.
 */
export async function emit<Name extends EventName>(
  kernel: Kernel,
  name: Name,
  data: EventData[Name],
  rows?: RowsOf,
): Promise<void> {
  if (EVENTS[name].category === 'auth' && !kernel.db.isTransaction)
    throw new Error(`${name} is emitted in the transaction that causes it`)
  const recorded = kernel.events.record(kernel, name, data, rows)
  if (recorded !== undefined) await recorded
  kernel.afterCommit(() => kernel.events.tell(name, data))
}
