import { broken, type GatehouseError } from '../failure.ts'
import { type Connection, onAbort, pause } from '../request.ts'
import { connect } from './connect.ts'
import type { StreamEvent } from './event-parser.ts'
import { asFailure, isLasting, streamEnded } from './stream-failure.ts'

type Following = {
  readonly connection: Connection
  /** The body of `POST /realtime`, for each connection. */
  readonly body: () => object
  /** A connection begins. `isResumed`: its events go on after those of the one before, unless it says `reset`. */
  readonly opened: (isResumed: boolean) => void
  /** Takes events that came together. */
  readonly apply: (events: readonly StreamEvent[]) => void
  /** The connection is lost; another one will be made. */
  readonly broken: (error: GatehouseError) => void
  /** The service gives this caller no stream. */
  readonly ended: (error: GatehouseError) => void
  readonly signal?: AbortSignal | undefined
}

export type Follower = {
  close(): void
  /** Begins again with a snapshot. */
  restart(): void
}

/** Milliseconds between two connections, unless the service says another time. */
const RETRY = 2_000
const MOST = 30_000
/** Refusals of the request after a stream that was whole, in about a minute: its table may be changing. */
const PATIENCE = 5

/** Follows a stream until it is closed or refused, by one connection after the other. */
export function follow(parts: Following): Follower {
  let [lastId, retry, failures, patience] = ['', RETRY, 0, 0]
  let [isClosed, isHurried] = [false, false]
  /** The headers of a caller whose stream has ended, and why. */
  let dismissed: { readonly headers: string; readonly reason: string } | undefined
  let leaving = new AbortController()
  // Pages and workers of browsers are told when the network is back.
  const network = 'ononline' in globalThis ? (globalThis as unknown as EventTarget) : undefined

  async function run(): Promise<void> {
    while (!isClosed) {
      const error = await attempt().then(() => broken(), asFailure)
      if (isClosed) return
      if (isLasting(error) && (error.status !== 400 || --patience < 0)) return end(error)
      if (!isHurried) {
        parts.broken(error)
        leaving = new AbortController()
        await pause(delay() + (error.retryAfter ?? 0) * 1_000, leaving.signal)
      }
      isHurried = false
    }
  }

  async function attempt(): Promise<void> {
    leaving = new AbortController()
    const headers = await parts.connection.headers()
    const caller = JSON.stringify(headers)
    // A session that was renewed has other headers.
    if (caller === dismissed?.headers) throw streamEnded(dismissed.reason)
    let [isWhole, isReady] = [lastId !== '', false]
    let last: StreamEvent | undefined
    await connect({
      connection: parts.connection,
      headers,
      body: parts.body(),
      lastId,
      leaving,
      opened: () => parts.opened(lastId !== ''),
      take(events, parser) {
        for (const event of events) {
          last = event
          if (event.name === 'ready') [isWhole, isReady, failures, patience] = [true, true, 0, PATIENCE]
          if (event.name === 'reset') isWhole = false
        }
        lastId = isWhole ? parser.lastId() || lastId : ''
        retry = parser.retry() ?? retry
        if (events.length > 0) parts.apply(events)
      },
    })
    if (last?.name !== 'end' && last?.name !== 'reset') return
    const { reason } = JSON.parse(last.data)
    if (reason === 'too_many') throw streamEnded(reason)
    if (last.name === 'reset' || reason === 'shutting_down') return
    dismissed = { headers: caller, reason }
    isHurried = isReady
  }

  /** Doubles with each failure, and differs between callers, who have all lost the same service. */
  const delay = (): number => Math.min(MOST, retry * 2 ** failures++) * (0.5 + Math.random() / 2)

  function hurry(): void {
    isHurried = true
    leaving.abort()
  }

  function close(): void {
    isClosed = true
    hurry()
  }

  function end(error: GatehouseError): void {
    close()
    parts.ended(error)
  }

  // The connection of before is lost, even if nothing says so.
  network?.addEventListener('online', hurry)
  const release = onAbort(close, parts.signal)
  void run().then(() => {
    release()
    network?.removeEventListener('online', hurry)
  })
  return {
    close,
    restart() {
      lastId = ''
      hurry()
    },
  }
}
