import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import type { Kernel } from '../../kernel.ts'
import type { App } from '../app.ts'
import { edge } from '../failures.ts'
import { networkOf } from '../limits/limits.ts'
import { type BodyHold, createBodyBudget } from './body-budget.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The payer of its body when that is not its address: the client, because all bodies for one database wait for that database. */
    bodyPayer: string | undefined
    /** The most bytes of its body, below the limit of the route. */
    bodyLimit: number | undefined
    /** The most values of a JSON body; undefined for any number. Reading a million takes a second of the process. */
    bodyValues: number | undefined
    /** The share of its body in `limits.bodies`; undefined for a small body, which is not counted. */
    bodyHold: BodyHold | undefined
    /** Stops reading its body; `done` is not called. */
    stopBody: (() => void) | undefined
    /** Starts to count its body. */
    openBody(breakOff: (refusal: Error) => void): BodyHold
  }
}

/** A body up to this size takes less memory than its connection. It is not counted, and so never refused. */
const SMALL = 16_384

/** Bounds the memory of all request bodies of this process. */
export function budgetBodies(app: App, { config, metrics, now }: Kernel): void {
  const { bodies, min_rate } = config.limits
  const budget = createBodyBudget({
    max: bodies,
    rate: min_rate,
    now: () => now().getTime(),
    onRefusal: () => metrics.count('gatehouse_bodies_refused_total'),
  })
  metrics.gauge('gatehouse_body_bytes', 'Memory that bodies of requests take', [], () => [
    { labels: {}, value: budget.held() },
  ])
  app.decorateRequest('bodyPayer', undefined)
  app.decorateRequest('bodyLimit', undefined)
  app.decorateRequest('bodyValues', undefined)
  app.decorateRequest('bodyHold', undefined)
  app.decorateRequest('stopBody', undefined)
  app.decorateRequest('openBody', function (this: FastifyRequest, breakOff: (refusal: Error) => void) {
    this.bodyHold = budget.open({ payer: this.bodyPayer ?? networkOf(this.clientAddress), breakOff })
    return this.bodyHold
  })
}

type BodyCallback = (error: Error | null, bytes: Buffer) => void

/** Calls `done` with the bytes of a body when it is complete. `limit` in bytes. */
export function collectBody(
  request: FastifyRequest,
  payload: Readable,
  limit: number,
  done: BodyCallback,
): void {
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > limit) {
    done(bodyTooLarge(limit), NONE)
    return
  }
  let bytes: Buffer = NONE
  let length = 0

  const stop = () => void payload.off('data', add).off('end', finish).off('error', end)
  const end = (error: Error | null) => {
    stop()
    // A refused body holds no bytes, and is not aborted a second time.
    if (error !== null) request.bodyHold?.release()
    done(error, bytes.subarray(0, length))
    bytes = NONE
  }
  const finish = () => end(null)
  const add = (chunk: Buffer) => {
    const before = length
    length += chunk.length
    if (length > limit) return end(bodyTooLarge(limit))
    try {
      if (length > SMALL)
        (request.bodyHold ?? request.openBody(end)).take(before > SMALL ? chunk.length : length)
    } catch (refusal) {
      return end(refusal as Error) // what `take` throws
    }
    bytes = before === 0 ? chunk : joined(bytes, before, chunk, declared || limit)
  }
  payload.on('data', add).on('end', finish).on('error', end)
  request.stopBody = stop
}

const NONE = Buffer.alloc(0)

/**
 * Appends a chunk to one growing buffer. Chunks are not kept: a chunk may contain one byte of the body, and its buffer takes a
 * hundred.
 */
function joined(bytes: Buffer, length: number, chunk: Buffer, max: number): Buffer {
  const needed = length + chunk.length
  const room = bytes.length >= needed ? bytes : Buffer.allocUnsafeSlow(Math.min(max, 2 * needed))
  if (room !== bytes) bytes.copy(room, 0, 0, length)
  chunk.copy(room, length)
  return room
}

export const bodyTooLarge = (limit: number) =>
  edge('payload_too_large', { hint: `At most ${limit} bytes`, details: { maximum_bytes: limit } })
