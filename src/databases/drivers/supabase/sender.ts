import { type ConcurrencyLimit, createConcurrencyLimit } from '#databases/drivers/concurrency-limit.ts'
import type { DriverStats } from '#databases/drivers/driver.ts'
import { callerLeft } from '#databases/drivers/presence.ts'
import { lossOf } from '#databases/drivers/supabase/errors.ts'
import { unavailable } from '#databases/drivers/unavailable.ts'
import { createCircuitBreaker } from '#kernel/circuit-breaker.ts'
import { Failure } from '#kernel/errors.ts'
import type { Outbound, OutboundAnswer, OutboundRequest } from '#kernel/http/outbound/outbound.ts'

export type SenderOptions = {
  readonly send: Outbound['send']
  /** A limit shared with other endpoints, besides its own. */
  readonly shared?: ConcurrencyLimit
  readonly maxConnections: number
  readonly maxWaiting: number
  /** Also how long a caller waits for a place. Milliseconds, as all of these. */
  readonly connectTimeout: number
  readonly statementTimeout: number
}

/** Sends requests with a limit on how many run at once, a timeout, and a circuit breaker. */
type Sender = {
  send(url: string, request: Omit<OutboundRequest, 'timeout'>): Promise<OutboundAnswer>
  stats(): DriverStats
}

export function createSender(options: SenderOptions): Sender {
  const breaker = createCircuitBreaker(() => performance.now(), unavailable)
  const limit = createConcurrencyLimit({
    places: options.maxConnections,
    waiting: options.maxWaiting,
    patience: options.connectTimeout,
  })
  const acquire = async () => {
    const release = await limit.acquire()
    try {
      const releaseShared = await options.shared?.acquire()
      return () => {
        releaseShared?.()
        release()
      }
    } catch (error) {
      release()
      throw error
    }
  }

  async function send(url: string, request: Omit<OutboundRequest, 'timeout'>): Promise<OutboundAnswer> {
    if (breaker.state() === 'open') throw breaker.refusal()
    const release = await acquire()
    try {
      if (request.signal?.aborted) throw callerLeft()
      if (!breaker.allows()) throw breaker.refusal()
      return await attempt(url, { ...request, timeout: options.statementTimeout })
    } finally {
      release()
    }
  }

  async function attempt(url: string, request: OutboundRequest): Promise<OutboundAnswer> {
    try {
      const answer = await options.send(url, request)
      breaker.succeeded()
      return answer
    } catch (error) {
      const failure = lossOf(error)
      if (failure instanceof Failure && failure.code === 'client_unavailable') breaker.failed()
      else breaker.succeeded()
      throw failure
    }
  }

  return {
    send,
    stats() {
      const { active, waiting } = limit.stats()
      return { total: active, idle: 0, waiting, circuit: breaker.state() }
    },
  }
}
