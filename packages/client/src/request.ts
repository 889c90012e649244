import { broken, failure, type GatehouseError, refusal } from './failure.ts'
import { isObject, type Numbers, parseJson, toJson } from './json.ts'

/** The service, and who is calling. */
export type Connection = {
  /** The address of the service, without a slash at its end. */
  readonly url: string
  /** Is asked at each request: the caller may have another session by then. */
  headers(): Promise<Readonly<Record<string, string>>>
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

/** The bounds of a request that was given none. */
export const UNBOUNDED: Bounds = {}

/** The methods of all requests. */
export const boundMethods = (bounds: Bounds, next: (change: { readonly bounds: Bounds }) => object) => ({
  signal: (signal: AbortSignal) => next({ bounds: { ...bounds, signal } }),
  timeout: (timeout: number) => next({ bounds: { ...bounds, timeout } }),
})

type Ask = Bounds & {
  readonly path: string
  readonly body: object
  /** The service runs the request once under it. */
  readonly key?: string | undefined
}

/** The members of the service's answers that the client reads. */
export type Reply = {
  readonly data?: unknown
  readonly count?: number
  readonly has_more?: boolean
  readonly affected_rows?: number | undefined
  readonly data_truncated?: boolean
  readonly data_omitted?: boolean
  readonly rows?: number
  readonly results?: readonly Reply[]
  readonly meta?: { readonly rows_affected: number }
}

/** Requests that may be sent again without a key. */
const READS: readonly string[] = ['/gateway/fetch', '/query/count']
const RETRIES = 3
/** Milliseconds before the first repetition; each further one takes three times as long. */
const PAUSE = 100
/** Milliseconds. A longer timer would end at once. */
const LONGEST_TIMER = 2 ** 31 - 1
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
      const isRepeatable = READS.includes(ask.path) || ask.key !== undefined
      const wait = isRepeatable && attempt < RETRIES ? waitAfter(answer, attempt) : undefined
      if (wait === undefined) throw answer
      await pause(wait, signal)
    }
  } finally {
    end()
  }
}

/** Calls it when the signal is aborted, at once if it is already. Returns the function that stops that. */
export function onAbort(work: () => void, signal?: AbortSignal): () => void {
  signal?.addEventListener('abort', work)
  if (signal?.aborted) work()
  return () => signal?.removeEventListener('abort', work)
}

/** One signal for each request, so that neither a listener nor a timer is left behind. */
function within({ signal, timeout }: Bounds): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController()
  const stop = (): void => controller.abort(signal?.reason)
  const late = (): void => controller.abort(new DOMException('', 'TimeoutError'))
  const timer = timeout === undefined ? undefined : setTimeout(late, Math.min(timeout, LONGEST_TIMER))
  const release = onAbort(stop, signal)
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer)
      release()
    },
  }
}

type Attempt = {
  readonly path: string
  readonly body: string
  readonly key?: string | undefined
  readonly signal: AbortSignal
}
type Sending = Omit<Attempt, 'key'> & { readonly headers: Readonly<Record<string, string>> }

async function attempted(connection: Connection, ask: Attempt): Promise<Reply | GatehouseError> {
  const { path, body, key, signal } = ask
  const own = signal.aborted ? undefined : await Promise.race([connection.headers(), abortOf(signal)])
  if (own === undefined || signal.aborted) return stopped(signal)
  try {
    const headers = { ...own, ...(key !== undefined && { 'idempotency-key': key }) }
    const response = await send(connection, { path, headers, body, signal })
    const answer = await jsonOf(response, connection.numbers)
    return response.ok && isObject(answer) ? answer : refusal(response, answer)
  } catch (cause) {
    return signal.aborted ? stopped(signal) : broken(cause)
  }
}

export const send = (
  { url, fetch }: Connection,
  { path, headers, body, signal }: Sending,
): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
    // The key must not follow to another host.
    redirect: 'manual',
    signal,
  })

const abortOf = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => onAbort(() => resolve(undefined), signal))

/** Undefined for a text that is not JSON. */
export async function jsonOf(response: Response, numbers: Numbers): Promise<unknown> {
  const text = await response.text()
  try {
    return parseJson(text, numbers)
  } catch {
    return undefined
  }
}

function stopped({ reason }: AbortSignal): GatehouseError {
  const isLate = isObject(reason) && 'name' in reason && reason.name === 'TimeoutError'
  const [code, what] = isLate ? ['timeout', 'took too long'] : ['aborted', 'was aborted']
  return failure({ code, message: `The request ${what}`, cause: reason })
}

/** Milliseconds to wait before the request is sent again; undefined if it is not. */
function waitAfter({ code, status, retryAfter = 0 }: GatehouseError, attempt: number): number | undefined {
  const passes = [429, 502, 503].includes(status) || code === 'write_conflict'
  if ((!passes && (code !== 'network' || status > 0)) || retryAfter > LONGEST_WAIT) return undefined
  // Differs between callers, who may all have been refused at the same moment.
  return retryAfter * 1_000 + PAUSE * 3 ** attempt * (0.5 + Math.random() / 2)
}

/** Ends early when the signal is aborted; the next attempt sees that. */
export const pause = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.min(milliseconds, LONGEST_TIMER))
    const end = (): void => {
      clearTimeout(timer)
      resolve()
    }
    onAbort(end, signal)
  })
