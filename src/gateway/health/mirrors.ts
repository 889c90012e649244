import { createDirectRequests, type OutboundAnswer } from '#kernel/http/outbound/outbound.ts'

/** Another installation, or another machine of this one (gateway.md 16). */
export type Mirror = {
  readonly url: string
  readonly status: 'online' | 'offline'
  readonly latency_ms: number
  readonly download_bytes_per_sec: number
  readonly cargo_toml_version: string
  readonly message: string
}

/** Milliseconds. */
const PATIENCE = 2_000
export const FRESH = 5_000
/** Bytes of an answer that are read. */
const MAX_BYTES = 262_144

export type Mirrors = { readonly states: () => Promise<Mirror[]>; close(): Promise<void> }

/** Probes all mirrors in parallel, at most once in five seconds however many callers ask. */
export function createMirrors(urls: readonly string[]): Mirrors {
  const requests = createDirectRequests({ connectTimeout: PATIENCE, idleTimeout: FRESH })
  return {
    states: keepFor(FRESH, () => Promise.all(urls.map((url) => probe(requests, url)))),
    close: requests.close,
  }
}

/** The same answer for all who ask within this time, in milliseconds. `ask` must not reject. */
export function keepFor<T>(milliseconds: number, ask: () => Promise<T>): () => Promise<T> {
  let latest: { readonly answer: Promise<T>; readonly at: number } | undefined
  return () => {
    const at = performance.now()
    if (latest === undefined || at - latest.at >= milliseconds) latest = { answer: ask(), at }
    return latest.answer
  }
}

type Requests = ReturnType<typeof createDirectRequests>

/** Asks for `/`, which reports the version. Not `/health/cluster`: two mirrors of each other would never end. */
async function probe({ send }: Requests, url: string): Promise<Mirror> {
  const { username, password, origin } = new URL(url)
  const began = performance.now()
  try {
    const answer = await send(`${origin}/`, {
      headers: { accept: 'application/json', ...credentials(username, password) },
      timeout: PATIENCE,
      maxBytes: MAX_BYTES,
    })
    return { url: shown(url), ...judged(answer, performance.now() - began) }
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    const message = isLate ? `no answer within ${PATIENCE} ms` : 'cannot be reached'
    return { url: shown(url), ...offline(message, performance.now() - began) }
  }
}

function credentials(username: string, password: string): Record<string, string> {
  if (username === '' && password === '') return {}
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(text).toString('base64')}` }
}

/** The URL may have credentials in its user, path and query; this is open to all. */
const shown = (url: string): string => new URL(url).origin

type State = Omit<Mirror, 'url'>

function judged({ status, body }: OutboundAnswer, took: number): State {
  const facts = status === 200 ? objectIn(body) : undefined
  if (facts === undefined)
    return offline(status === 200 ? 'does not answer with JSON' : `answers ${status}`, took)
  const version = versionOf(facts)
  return {
    status: 'online',
    latency_ms: rounded(took),
    download_bytes_per_sec: Math.round((body.length * 1_000) / Math.max(took, 0.001)),
    cargo_toml_version: version ?? '',
    message: version === undefined ? 'answers without a version' : 'answers',
  }
}

const offline = (message: string, took: number): State => ({
  status: 'offline',
  latency_ms: rounded(took),
  download_bytes_per_sec: 0,
  cargo_toml_version: '',
  message,
})

const rounded = (milliseconds: number): number => Math.round(milliseconds * 10) / 10

type Facts = { readonly version?: unknown; readonly cargo_toml_version?: unknown }

function objectIn(body: Buffer): Facts | undefined {
  try {
    const parsed: unknown = JSON.parse(body.toString())
    return typeof parsed === 'object' && parsed !== null ? parsed : undefined
  } catch {
    return undefined
  }
}

/** Shown to all callers, so the mirror has no other text to pass on. */
const VERSION = /^[\w.+-]{1,64}$/

/** Gatehouse has `version`; other services of the same interface may have `cargo_toml_version`. */
const versionOf = ({ cargo_toml_version, version }: Facts): string | undefined =>
  [cargo_toml_version, version].find(isVersion)

const isVersion = (text: unknown): text is string => typeof text === 'string' && VERSION.test(text)
