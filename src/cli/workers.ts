import cluster, { type Worker } from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { AggregatorRegistry } from 'prom-client'
import type { Log } from '#kernel/log.ts'
import type { Figures } from '#kernel/metrics.ts'
import type { Deadline } from '#kernel/shutdown.ts'
import type { ServiceDatabases } from '#startup/open-databases.ts'
import type { InstallingContext } from './context.ts'
import type { PipelinesInUse } from './pipelines-in-use.ts'
import type { Running } from './running.ts'
import type { Doctor } from './running-doctor.ts'
import type { ToPrimary, ToWorker, WorkerStart } from './worker-messages.ts'

/** Forks `server.workers` processes that share the port. A worker that exits or stops responding is replaced. */
export function startWorkers(
  { config, log, pipelines }: InstallingContext & { readonly pipelines: PipelinesInUse },
  databases: ServiceDatabases,
  doctor: Doctor,
): Running {
  const { controlUrl, pooler, builtIn, callerRoles, logging, loggingDatabase, embedded } = databases
  const handles = new Set<Handle>()
  const listening = new Set<Handle>()
  const stopping = new AbortController()
  // Workers share a port by its number as they ask for it, so all ask for 0 as long as one listens by that.
  let asked = config.server.port
  let found = asked
  const fork = (): Handle => {
    const start = () => {
      if (listening.size === 0) asked = found
      return {
        databases: { controlUrl, pooler, builtIn, callerRoles, logging, loggingDatabase, embedded },
        port: asked,
        pipelines: pipelines.file(),
      }
    }
    const handle = forkWorker(start, log, {
      metrics: async () => ({ metrics: await metricsOf([...handles], log) }),
      figures: async () => ({ figures: await figuresOf([...handles]) }),
      doctor: async () => ({ findings: await doctor() }),
    })
    handles.add(handle)
    handle.listening.then(
      (port) => {
        found = port
        listening.add(handle)
      },
      () => {},
    )
    handle.exited.then(() => {
      handles.delete(handle)
      listening.delete(handle)
    })
    return handle
  }
  const first = Array.from({ length: config.server.workers }, fork)
  for (const handle of first) keepAlive(handle, fork, log, stopping.signal)
  return {
    port: Promise.all(first.map(({ listening }) => listening)).then(([port = 0]) => port),
    usePipelines(file) {
      for (const { worker } of handles) sendTo(worker, { usePipelines: file ?? null })
    },
    async stop(deadline) {
      stopping.abort()
      await Promise.all([...handles].map((handle) => stopWorker(handle, deadline)))
    },
  }
}

/** A worker process, from its fork to its exit. */
type Handle = {
  readonly worker: Worker
  /** Resolves to the worker's port. Rejects if the worker exits before it listens. */
  readonly listening: Promise<number>
  readonly exited: Promise<Exit>
  /** Whether it has answered the last heartbeats. */
  isAnswering(): boolean
}

/** The primary's answers to the questions of a worker. */
type Answers = { readonly [Question in 'metrics' | 'figures' | 'doctor']: () => Promise<ToWorker> }

function forkWorker(start: () => WorkerStart, log: Log, answers: Answers): Handle {
  const worker = cluster.fork()
  closeUnaccepted(worker)
  const listening = Promise.withResolvers<number>()
  // Only the first start awaits `listening`. For a replacement, a rejection must not be unhandled: `keepAlive` replaces it as well.
  listening.promise.catch(() => {})
  worker.on('message', async (message: ToPrimary) => {
    if (message === 'hello') sendTo(worker, start())
    else if (message === 'metrics' || message === 'figures' || message === 'doctor')
      sendTo(worker, await answers[message]())
    else if (typeof message === 'object' && 'listening' in message) listening.resolve(message.listening)
  })
  const exited = exitOf(worker)
  exited.then(({ code, signal }) => {
    listening.reject(new Error(`A worker exited before it could serve (${signal ?? `code ${code}`}).`))
  })
  return { worker, listening: listening.promise, exited, isAnswering: watchHeartbeat(worker, log) }
}

type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

function exitOf(worker: Worker): Promise<Exit> {
  return new Promise((resolve) => {
    worker.once('exit', (code: number | null, signal: NodeJS.Signals | null) => resolve({ code, signal }))
    // A failed fork emits `error` without `exit`. A message sent too late emits `error` as well, which can be ignored.
    worker.on('error', () => worker.process.pid === undefined && resolve({ code: null, signal: null }))
  })
}

/**
 * Closes a connection that an exited worker did not accept. The primary sends a worker one connection at a time and waits until it is
 * accepted. If the worker exits first, Node 26 leaves the connection open in the primary, unanswered; once closed, the client retries.
 */
function closeUnaccepted({ process }: Worker): void {
  const { send } = process
  let pending: { close(): void } | undefined
  process.send = (...args: unknown[]) => {
    const [message, handle] = args as [{ act?: string }, { close(): void }] // the arguments of Node's cluster module
    if (message.act === 'newconn') pending = handle
    return send.apply(process, args as Parameters<typeof send>)
  }
  // If the worker has accepted it, the primary's copy is already closed, and closing it again is harmless.
  process.once('exit', () => pending?.close())
}

function sendTo(worker: Worker, message: ToWorker): void {
  // A worker that has just exited cannot receive messages; its `exit` event is handled separately.
  if (worker.isConnected()) worker.send(message, () => {})
}

const BEAT_MS = 1_000
/** Heartbeats without an answer after which a worker is killed: the process or its event loop is blocked. */
const SILENT_BEATS = 10
/** The same limit until the worker listens: it loads modules, which a busy machine may take ten seconds for. */
const LOADING_BEATS = 60

/**
 * Kills a worker that does not answer heartbeats. The returned function says whether it answers. Heartbeats are counted, not timed, so that
 * workers miss only one if the machine or the primary is suspended. A blocked worker holds at most one new connection.
 */
function watchHeartbeat(worker: Worker, log: Log): () => boolean {
  let missed = 0
  let limit = LOADING_BEATS
  const beating = setInterval(() => {
    missed++
    if (missed < limit) return sendTo(worker, 'beat')
    clearInterval(beating)
    log.error({ event: 'worker_silent', pid: worker.process.pid }, 'a worker does not respond and is killed')
    worker.process.kill('SIGKILL')
  }, BEAT_MS)
  worker.on('message', (message: ToPrimary) => {
    if (typeof message === 'object' && 'listening' in message) limit = SILENT_BEATS
    missed = 0
  })
  worker.once('exit', () => clearInterval(beating))
  return () => missed <= 2
}

/** Minimum lifetime of a worker, in milliseconds, that resets the count of short lives. */
const STEADY_MS = 60_000
const FIRST_DELAY_MS = 1_000
const MAX_DELAY_MS = 60_000

/** Delay before the next fork, in milliseconds. It doubles with each consecutive short life. */
const replacementDelay = (shortLives: number): number =>
  Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.max(0, shortLives - 1))

async function keepAlive(first: Handle, fork: () => Handle, log: Log, stopping: AbortSignal): Promise<void> {
  let shortLives = 0
  for (let handle = first; ; handle = fork()) {
    const began = performance.now()
    const { code, signal } = await handle.exited
    if (stopping.aborted) return
    shortLives = performance.now() - began < STEADY_MS ? shortLives + 1 : 0
    const delay = replacementDelay(shortLives)
    log.error(
      { event: 'worker_lost', code, signal, replaced_in_seconds: delay / 1_000 },
      'a worker exited and will be replaced',
    )
    await sleep(delay, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) return
  }
}

/** Asks the worker to stop, and kills it if it exceeds the deadline. */
async function stopWorker({ worker, exited }: Handle, deadline: Deadline): Promise<void> {
  sendTo(worker, { stop: deadline.left() })
  const timeout = setTimeout(() => void worker.process.kill('SIGKILL'), deadline.left('workers'))
  await exited
  clearTimeout(timeout)
}

/** Time limit for a worker to report its metrics, in milliseconds. A silent metrics source takes two seconds of it. */
const METRICS_MS = 3_000

/** Merges the metrics of all workers. Workers that do not respond are missing from this scrape, which is logged. */
async function metricsOf(handles: readonly Handle[], log: Log): Promise<string> {
  const reports = await collectAll(handles, 'collect', (message) =>
    'collected' in message ? message.collected : undefined,
  )
  const missing = handles.length - reports.length
  if (missing > 0) {
    log.warn({ event: 'metrics_incomplete', missing }, 'some workers did not report their metrics in time')
  }
  return AggregatorRegistry.aggregate([...reports]).metrics()
}

/** Those of a worker that does not respond are missing. */
const figuresOf = (handles: readonly Handle[]): Promise<readonly Figures[]> =>
  collectAll(handles, 'report', (message) => ('reported' in message ? message.reported : undefined))

type Read<T> = (message: Exclude<ToPrimary, string>) => T | undefined

async function collectAll<T>(
  handles: readonly Handle[],
  question: ToWorker,
  read: Read<T>,
): Promise<readonly T[]> {
  const answering = handles.filter((handle) => handle.isAnswering())
  const reports = await Promise.all(answering.map((handle) => collect(handle, question, read)))
  return reports.filter((report) => report !== undefined)
}

function collect<T>({ worker, exited }: Handle, question: ToWorker, read: Read<T>): Promise<T | undefined> {
  return new Promise((resolve) => {
    const onMessage = (message: ToPrimary) => {
      const report = typeof message === 'object' ? read(message) : undefined
      if (report !== undefined) done(report)
    }
    const timeout = setTimeout(() => done(undefined), METRICS_MS)
    const done = (report: T | undefined): void => {
      clearTimeout(timeout)
      worker.off('message', onMessage)
      resolve(report)
    }
    worker.on('message', onMessage)
    exited.then(() => done(undefined))
    sendTo(worker, question)
  })
}
