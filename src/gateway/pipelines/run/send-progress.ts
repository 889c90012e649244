import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '#kernel/errors.ts'
import { JSON_TYPE, preferredType } from '#kernel/http/accept.ts'
import type { RunProgress } from './run-request.ts'
import { type RunResult, resultJson } from './run-result.ts'

const LINES_TYPE = 'application/x-ndjson'

/** Media types of a run. */
export const RUN_TYPES = [JSON_TYPE, LINES_TYPE]

export const wantsProgress = ({ headers: { accept } }: FastifyRequest): boolean =>
  accept !== undefined && preferredType(accept, RUN_TYPES) === LINES_TYPE

type Run = (onProgress: (progress: RunProgress) => void) => Promise<RunResult>

/**
 * Answers in lines of JSON: the progress after batches, as often as the caller reads it, and then the result or the failure. A failure
 * before the first batch is an answer of its own, with its status.
 */
export async function sendProgress(reply: FastifyReply, run: Run): Promise<FastifyReply> {
  const updates = createUpdates<RunProgress>()
  const running = run(updates.put).finally(updates.end)
  // Awaited below; until then it must not count as unhandled.
  running.catch(() => {})
  const first = await updates.next()
  if (first === undefined) await running
  let hasResult = false
  running.then(
    () => {
      hasResult = true
    },
    () => {},
  )
  // The run has a limit of its own (gateway.pipelines.timeout), and watches over its caller: its last line says why it has ended.
  return reply
    .type(`${LINES_TYPE}; charset=utf-8`)
    .sendLong(lines(first, updates, running), { isTimed: false, isWatched: () => hasResult })
}

async function* lines(
  first: RunProgress | undefined,
  { next }: Updates<RunProgress>,
  running: Promise<RunResult>,
): AsyncGenerator<Buffer> {
  for (let progress = first; progress !== undefined; progress = await next())
    yield line({
      progress: {
        rows_fetched: progress.rowsFetched,
        rows_inserted: progress.rowsInserted,
        rows_refused: progress.errors,
      },
    })
  yield await lastLine(running)
}

async function lastLine(running: Promise<RunResult>): Promise<Buffer> {
  try {
    return Buffer.concat([Buffer.from('{"result":'), ...resultJson(await running), Buffer.from('}\n')])
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { code, message, hint = message, details } = error
    return line({ failure: { message, error: hint, code, details } })
  }
}

const line = (value: object): Buffer => Buffer.from(`${JSON.stringify(value)}\n`)

type Updates<T> = {
  put(value: T): void
  end(): void
  /** The latest value since the last call; undefined after the end. */
  next(): Promise<T | undefined>
}

function createUpdates<T>(): Updates<T> {
  let latest: T | undefined
  let hasEnded = false
  let news = Promise.withResolvers<void>()
  return {
    put(value) {
      latest = value
      news.resolve()
    },
    end() {
      hasEnded = true
      news.resolve()
    },
    async next() {
      await news.promise
      const value = latest
      latest = undefined
      if (!hasEnded) news = Promise.withResolvers()
      return value
    },
  }
}
