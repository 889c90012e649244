import { failure, type GatehouseError, refusal } from './failure.ts'
import { type Numbers, parseJson, toJson } from './json.ts'

/** The service, and who is calling. */
export type Connection = {
  /** The address of the service, without a slash at its end. */
  readonly url: string
  /** Is asked at each request: the caller may have another session by then. */
  headers(): Promise<Record<string, string>>
  /** The parts of the headers: those that are always the same, and those of the session, at once if its function knows it at once. */
  readonly fixed: Readonly<Record<string, string>>
  session(): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>
  /** The session is a cookie, which only the browser sees. */
  readonly sendsCookies: boolean
  readonly fetch: typeof fetch
  readonly numbers: Numbers
}

/** How long a request may take, and who may end it. */
export type Bounds = {
  readonly signal?: AbortSignal
  /** Milliseconds for all attempts together. */
  readonly timeout?: number
}

type Ask = Bounds & {
  readonly path: string
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the request may be sent again: it reads, or the service knows its key. */
  readonly isRepeatable: boolean
}

/** The members of the service's answers that the client reads. */
export type Reply = {
  readonly data?: unknown
  readonly count?: number
  readonly has_more?: boolean
  readonly affected_rows?: number
  readonly data_truncated?: boolean
  readonly data_omitted?: boolean
  readonly rows?: number
  readonly results?: readonly Reply[]
  readonly meta?: { readonly rows_affected: number }
}

const RETRIES = 3
/** Milliseconds before the first repetition; each further one takes three times as long. */
const PAUSE = 100
/** Seconds to wait at most when the service says how long. */
const LONGEST_WAIT = 10

/** Always POST: proxies and browsers repeat a PUT or DELETE by themselves. */
export async function post(connection: Connection, ask: Ask): Promise<Reply> {
  const body = toJson(ask.body)
  const { signal, end } = within(ask)
  try {
    for (let attempt = 0; ; attempt++) {
      const answer = await attempted(connection, { ...ask, body, signal })
      if (!(answer instanceof Error)) return answer
      const wait = ask.isRepeatable && attempt < RETRIES ? waitAfter(answer, attempt) : undefined
      if (wait === undefined) throw answer
      await pause(wait, signal)
    }
  } finally {
    end()
  }
}

/** One signal for each request, so that neither a listener nor a timer is left behind. */
function within({ signal, timeout }: Bounds): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController()
  const stop = (): void => controller.abort(signal?.reason)
  const late = (): void => controller.abort(new DOMException('The time is over', 'TimeoutError'))
  const timer = timeout === undefined ? undefined : setTimeout(late, timeout)
  signal?.addEventListener('abort', stop)
  if (signal?.aborted) stop()
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    },
  }
}

type Attempt = {
  readonly path: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

async function attempted(connection: Connection, ask: Attempt): Promise<Reply | GatehouseError> {
  const { path, body, signal } = ask
  const own = signal.aborted ? undefined : await Promise.race([connection.headers(), abortOf(signal)])
  if (own === undefined || signal.aborted) return stopped(signal)
  try {
    const response = await connection.fetch(connection.url + path, {
      method: 'POST',
      headers: { ...own, 'content-type': 'application/json', ...ask.headers },
      body,
      // The key must not follow to another host.
      redirect: 'manual',
      signal,
    })
    const answer = parsed(await response.text(), connection.numbers)
    return response.ok && isObject(answer) ? answer : refusal(response, answer)
  } catch (cause) {
    if (signal.aborted) return stopped(signal)
    return failure({
      code: 'network',
      message: 'The service cannot be reached, or the connection broke',
      cause,
    })
  }
}

const abortOf = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))

/** Undefined for a text that is not JSON. */
function parsed(text: string, numbers: Numbers): unknown {
  try {
    return parseJson(text, numbers)
  } catch {
    return undefined
  }
}

const isObject = (answer: unknown): answer is Reply => typeof answer === 'object' && answer !== null

const stopped = ({ reason }: AbortSignal): GatehouseError =>
  reason instanceof DOMException && reason.name === 'TimeoutError'
    ? failure({ code: 'timeout', message: 'The time of the request is over', cause: reason })
    : failure({ code: 'aborted', message: 'The request was aborted', cause: reason })

/** Milliseconds to wait before the request is sent again; undefined if it is not. */
function waitAfter({ code, status, retryAfter = 0 }: GatehouseError, attempt: number): number | undefined {
  const passes = status === 429 || status === 502 || status === 503 || code === 'write_conflict'
  if (!passes && !(code === 'network' && status === 0)) return undefined
  if (retryAfter > LONGEST_WAIT) return undefined
  // Differs between callers, who may all have been refused at the same moment.
  return retryAfter * 1_000 + PAUSE * 3 ** attempt * (0.5 + Math.random() / 2)
}

/** Ends early when the signal is aborted; the next attempt sees that. */
const pause = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    const end = (): void => {
      clearTimeout(timer)
      resolve()
    }
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
  })
