import { Worker } from 'node:worker_threads'
import type { QueueOptions } from './bounded-queue.ts'
import { createSemaphore } from './semaphore.ts'

/** A thread for work that would block the process: one job at a time, each within a deadline. */
type WorkerThread = {
  /** Throws `ThreadStopped` when the job has ended the thread, or took too long. */
  run(job: unknown, transfer?: readonly ArrayBuffer[]): Promise<unknown>
  close(): Promise<void>
}

type ThreadOptions = QueueOptions & {
  /** The module of the thread: it posts a message when it is ready, and then one as the answer to each job. */
  readonly module: URL
  /** Milliseconds for one job. */
  readonly deadline: number
  /** MiB of its heap. */
  readonly memory: number
}

/** The job was not finished. The next one gets a new thread. */
export class ThreadStopped extends Error {}

/** Milliseconds in which the modules of a thread are loaded. */
const LOADING = 30_000

/** The thread starts with the first job and does not keep the process alive. */
export function createWorkerThread({ module, deadline, memory, ...queue }: ThreadOptions): WorkerThread {
  const turns = createSemaphore(1, queue)
  let current: Promise<Worker> | undefined

  async function start(): Promise<Worker> {
    const resourceLimits = { maxOldGenerationSizeMb: memory }
    const worker = new Worker(module, { env: {}, execArgv: [], resourceLimits })
    worker.unref()
    // Without a listener, the error of an idle thread would end the process.
    worker.on('error', () => {})
    worker.once('exit', () => {
      current = undefined
    })
    return ending(worker, answerOf(worker, LOADING)).then(() => worker)
  }

  /** A thread that has failed is of no use any more, and may be in a loop. */
  async function ending<T>(worker: Worker, answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      await worker.terminate()
      throw error
    }
  }

  return {
    run: (job, transfer = []) =>
      turns.run(async () => {
        current ??= start()
        const worker = await current
        const answer = answerOf(worker, deadline)
        worker.postMessage(job, [...transfer])
        return ending(worker, answer)
      }),
    async close() {
      const worker = await current?.catch(() => undefined)
      await worker?.terminate()
    },
  }
}

/** The next message of a thread. */
function answerOf(worker: Worker, milliseconds: number): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const stop = (why: string, cause?: unknown) => reject(new ThreadStopped(why, { cause }))
  const timer = setTimeout(() => stop('The thread took too long'), milliseconds)
  const onError = (cause: unknown) => stop('The thread failed', cause)
  const onExit = () => stop('The thread has exited')
  worker.once('message', resolve).once('error', onError).once('exit', onExit)
  return promise.finally(() => {
    clearTimeout(timer)
    worker.off('message', resolve).off('error', onError).off('exit', onExit)
  })
}
