import { isIPv6 } from 'node:net'
import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import type { Kernel } from '../kernel.ts'
import type { App } from './app.ts'
import { type BodyHold, createBodyBudget } from './body-budget.ts'
import { edge } from './failures.ts'
import { networkOf } from './limits.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The name under which its body is counted, where that is not its address: bodies for one database wait for the same one. */
    bodyPayer: string | undefined
    /** What its body takes of `limits.bodies`; undefined for a small one, which is not counted. */
    bodyHold: BodyHold | undefined
    /** Reads no more of its body, and hands over nothing of it. */
    stopBody: (() => void) | undefined
    /** Begins to count its body. */
    openBody(breakOff: (refusal: Error) => void): BodyHold
  }
}

/** A body up to this size weighs less than its connection. It is not counted, so that it costs nothing and is never refused. */
const SMALL = 16_384

/** Bounds what all bodies of this process take together. */
export function budgetBodies(app: App, { config, metrics, now }: Kernel): void {
  const { bodies, min_rate } = config.limits
  const budget = createBodyBudget({
    most: bodies,
    rate: min_rate,
    now: () => now().getTime(),
    onRefusal: () => metrics.count('gatehouse_bodies_refused_total'),
  })
  metrics.gauge('gatehouse_body_bytes', 'Memory that bodies of requests take', [], () => [
    { labels: {}, value: budget.held() },
  ])
  app.decorateRequest('bodyPayer', undefined)
  app.decorateRequest('bodyHold', undefined)
  app.decorateRequest('stopBody', undefined)
  app.decorateRequest('openBody', function (this: FastifyRequest, breakOff: (refusal: Error) => void) {
    this.bodyHold = budget.open({ payer: this.bodyPayer ?? payerAt(this.clientAddress), breakOff })
    return this.bodyHold
  })
}

const payerAt = (address: string): string => (isIPv6(address) ? networkOf(address) : address)

export type Collected = (error: Error | null, bytes: Buffer) => void

/** Hands over the bytes of a body once all are here. `limit` in bytes. */
export function collectBody(
  request: FastifyRequest,
  payload: Readable,
  limit: number,
  done: Collected,
): void {
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > limit) {
    done(tooLarge(limit), NONE)
    return
  }
  let bytes: Buffer = NONE
  let length = 0

  const stop = () => void payload.off('data', add).off('end', finish).off('error', end)
  const end = (error: Error | null) => {
    stop()
    // One that has been refused holds no bytes, and cannot be broken off a second time.
    if (error !== null) request.bodyHold?.release()
    done(error, bytes.subarray(0, length))
    bytes = NONE
  }
  const finish = () => end(null)
  const add = (chunk: Buffer) => {
    const before = length
    length += chunk.length
    if (length > limit) return end(tooLarge(limit))
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
 * Copied into one piece of memory that grows, and not kept: a chunk may have one byte of the body, and its buffer weighs a
 * hundred.
 */
function joined(bytes: Buffer, length: number, chunk: Buffer, most: number): Buffer {
  const needed = length + chunk.length
  const room = bytes.length >= needed ? bytes : Buffer.allocUnsafeSlow(Math.min(most, 2 * needed))
  if (room !== bytes) bytes.copy(room, 0, 0, length)
  chunk.copy(room, length)
  return room
}

const tooLarge = (limit: number) =>
  edge('payload_too_large', { hint: `At most ${limit} bytes`, details: { maximum_bytes: limit } })
