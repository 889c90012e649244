import cluster, { type Worker } from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { AggregatorRegistry } from 'prom-client'
import type { Log } from '#kernel/log.ts'
import type { Deadline } from '#kernel/shutdown.ts'
import type { Databases } from '../control.ts'
import type { MakingContext } from './context.ts'
import type { Running } from './serve.ts'

/** What the primary hands to its workers over the process channel: it holds passwords, so it is in no environment. */
export type Handed = Pick<Databases, 'controlUrl' | 'pooler' | 'builtIn' | 'callerRoles' | 'logging'>

export type ToWorker =
  | { readonly databases: Handed }
  /** The primary asks whether the worker still answers; the same word comes back. */
  | 'beat'
  /** The worker's own metrics are wanted. */
  | 'collect'
  /** Those of all workers, as a worker has asked for them. */
  | { readonly metrics: string }
  /** To be over within that many milliseconds. */
  | { readonly stop: number }

export type ToPrimary =
  | 'hello'
  | 'beat'
  | 'metrics'
  | { readonly collected: object[] }
  | { readonly listening: number }

/** Forks `server.workers` processes that share the port. One that ends, or falls silent, is replaced. */
export function startWorkers({ config, log }: MakingContext, databases: Databases): Running {
  const { controlUrl, pooler, builtIn, callerRoles, logging } = databases
  const lives = new Set<Life>()
  const stopping = new AbortController()
  const begin = (): Life => {
    const life = live({ controlUrl, pooler, builtIn, callerRoles, logging }, log, () =>
      metricsOf([...lives], log),
    )
    lives.add(life)
    life.ended.then(() => lives.delete(life))
    return life
  }
  const first = Array.from({ length: config.server.workers }, begin)
  for (const life of first) keepAlive(life, begin, log, stopping.signal)
  return {
    port: Promise.all(first.map(({ listening }) => listening)).then(([port = 0]) => port),
    async stop(deadline) {
      stopping.abort()
      await Promise.all([...lives].map((life) => stopWorker(life, deadline)))
    },
  }
}

/** A worker from its fork to its end. */
type Life = {
  readonly worker: Worker
  /** Resolves to its port; rejects when it ends before. */
  readonly listening: Promise<number>
  readonly ended: Promise<End>
  /** Whether it has answered lately. */
  isAnswering(): boolean
}

function live(databases: Handed, log: Log, metricsOfAll: () => Promise<string>): Life {
  const worker = cluster.fork()
  closeUntaken(worker)
  const listening = Promise.withResolvers<number>()
  // A replacement that ends is replaced as well; only the first start waits for its workers.
  listening.promise.catch(() => {})
  worker.on('message', async (message: ToPrimary) => {
    if (message === 'hello') tell(worker, { databases })
    else if (message === 'metrics') tell(worker, { metrics: await metricsOfAll() })
    else if (typeof message === 'object' && 'listening' in message) listening.resolve(message.listening)
  })
  const ended = endOf(worker)
  ended.then(({ code, signal }) => {
    listening.reject(new Error(`A worker ended before it could serve (${signal ?? `code ${code}`}).`))
  })
  return { worker, listening: listening.promise, ended, isAnswering: watchPulse(worker, log) }
}

type End = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

function endOf(worker: Worker): Promise<End> {
  return new Promise((resolve) => {
    worker.once('exit', (code: number | null, signal: NodeJS.Signals | null) => resolve({ code, signal }))
    // Also a message that came too late for it, which is nothing; but one that could not be forked has no exit.
    worker.on('error', () => worker.process.pid === undefined && resolve({ code: null, signal: null }))
  })
}

/**
 * The primary hands a worker the next connection when it has taken the last. The one that a worker has not taken when it ends stays open
 * in the primary, where nothing would ever answer it (Node 26); it is closed here, so that its caller tries again.
 */
function closeUntaken({ process }: Worker): void {
  const { send } = process
  let handed: { close(): void } | undefined
  process.send = (...args: unknown[]) => {
    const [message, handle] = args as [{ act?: string }, { close(): void }] // what Node's own cluster module sends
    if (message.act === 'newconn') handed = handle
    return send.apply(process, args as Parameters<typeof send>)
  }
  // A second time does nothing.
  process.once('exit', () => handed?.close())
}

export function tell(worker: Worker, message: ToWorker): void {
  // One that has just ended hears nothing, and its end is told elsewhere.
  if (worker.isConnected()) worker.send(message, () => {})
}

const BEAT_MS = 1_000
/** Beats in a row without an answer, after which a worker is ended: it is frozen, or its event loop is. */
const SILENT_BEATS = 10
/** The same while it loads its modules. */
const LOADING_BEATS = 60

/**
 * Ends a worker that does not answer, and says whether it does. Beats are counted, not timed: after a sleep of the machine, or
 * of the primary alone, its workers have missed one. Meanwhile the worker has at most one of the new connections.
 */
function watchPulse(worker: Worker, log: Log): () => boolean {
  let missed = 0
  let patience = LOADING_BEATS
  const beating = setInterval(() => {
    missed++
    if (missed < patience) return tell(worker, 'beat')
    clearInterval(beating)
    log.error({ event: 'worker_silent', pid: worker.process.pid }, 'a worker does not answer and is ended')
    worker.process.kill('SIGKILL')
  }, BEAT_MS)
  worker.on('message', () => {
    patience = SILENT_BEATS
    missed = 0
  })
  worker.once('exit', () => clearInterval(beating))
  return () => missed <= 2
}

/** How long a worker has to live for its end not to count as another failure of the same kind. */
const STEADY_MS = 60_000
const FIRST_DELAY_MS = 1_000
const LONGEST_DELAY_MS = 60_000

/** How long to wait before the next fork: doubling from one short life to the next. */
export const replacementDelay = (shortLives: number): number =>
  Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.max(0, shortLives - 1))

async function keepAlive(first: Life, begin: () => Life, log: Log, stopping: AbortSignal): Promise<void> {
  let shortLives = 0
  for (let life = first; ; life = begin()) {
    const began = performance.now()
    const { code, signal } = await life.ended
    if (stopping.aborted) return
    shortLives = performance.now() - began < STEADY_MS ? shortLives + 1 : 0
    const delay = replacementDelay(shortLives)
    log.error(
      { event: 'worker_lost', code, signal, replaced_in_seconds: delay / 1_000 },
      'a worker ended and is replaced',
    )
    await sleep(delay, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) return
  }
}

/** Asks it to stop, and kills it when it is late. */
async function stopWorker({ worker, ended }: Life, deadline: Deadline): Promise<void> {
  tell(worker, { stop: deadline.left() })
  const late = setTimeout(() => void worker.process.kill('SIGKILL'), deadline.left('workers'))
  await ended
  clearTimeout(late)
}

/** How long a worker has to report its metrics: a source of its own that is silent costs it two seconds. */
const METRICS_MS = 3_000

/** Of the workers that answer. One that does not is missing from this scrape, and the log says so. */
async function metricsOf(lives: readonly Life[], log: Log): Promise<string> {
  const asked = await Promise.all(lives.map((life) => (life.isAnswering() ? collect(life) : undefined)))
  const reports = asked.filter((report) => report !== undefined)
  const missing = lives.length - reports.length
  if (missing > 0) {
    log.warn({ event: 'metrics_incomplete', missing }, 'not all workers have reported their metrics in time')
  }
  return AggregatorRegistry.aggregate(reports).metrics()
}

function collect({ worker, ended }: Life): Promise<object[] | undefined> {
  return new Promise((resolve) => {
    const hear = (message: ToPrimary) => {
      if (typeof message === 'object' && 'collected' in message) done(message.collected)
    }
    const late = setTimeout(() => done(undefined), METRICS_MS)
    const done = (report: object[] | undefined): void => {
      clearTimeout(late)
      worker.off('message', hear)
      resolve(report)
    }
    worker.on('message', hear)
    ended.then(() => done(undefined))
    tell(worker, 'collect')
  })
}
