import { hash } from 'node:crypto'
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { TrustedIssuer } from '#databases/drivers/driver.ts'
import type { Failure } from '#kernel/errors.ts'
import { retryAfter } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { singleFlight } from '#kernel/single-flight.ts'
import { fail } from '../errors.ts'

/** The keys of an issuer, as this process has read them. */
export type IssuerKeys = {
  /** Finds the key of a token. Throws issuer_unavailable while the issuer has never told any. */
  readonly find: JWTVerifyGetKey
  /**
   * Another text when the issuer publishes other keys. Old ones are read again meanwhile, so that a withdrawn key ends what it has signed
   * even if no new token arrives.
   */
  version(): string | undefined
  /** Throws why they cannot be read. */
  read(): Promise<void>
}

type KeysKernel = Pick<Kernel, 'log' | 'now' | 'outbound'>

/** Milliseconds. Keys that the issuer has withdrawn are accepted for that long, unless it is away. */
const MAX_KEY_AGE = 600_000
/** Between two requests for keys, so that tokens with unknown keys cause no flood of them. */
const MIN_KEY_AGE = 10_000
/** After a request that has failed. */
const COOL_DOWN = 10_000

type Published = { readonly find: JWTVerifyGetKey; readonly version: string; readonly isEmpty: boolean }
type Held = Published & { readonly since: number }

function expectKeys({ isEmpty }: Published): void {
  if (isEmpty) throw new Error('the issuer publishes no keys')
}

export function createIssuerKeys(kernel: KeysKernel, issuer: TrustedIssuer): IssuerKeys {
  const { now, log } = kernel
  const time = () => now().getTime()
  const readPublished = createReader(kernel, issuer)
  let held: Held | undefined
  let coolsUntil: number | undefined

  /** All callers share one request. It fails only while there are no keys at all. */
  const readOnce = singleFlight(async (): Promise<Held> => {
    try {
      const published = await readPublished()
      // One that had keys has withdrawn them. It is not away.
      if (held === undefined) expectKeys(published)
      held = { ...published, since: time() }
      coolsUntil = undefined
      return held
    } catch (cause) {
      log.warn(
        { event: 'issuer_failed', issuer: issuer.issuer, error: cause },
        'the keys of an issuer cannot be read',
      )
      coolsUntil = time() + COOL_DOWN
      if (held === undefined) throw unavailable(COOL_DOWN)
      return held
    }
  })
  /** Milliseconds. */
  const stillCools = (): number => {
    const left = (coolsUntil ?? 0) - time()
    // A longer wait is of a time before the clock was set back.
    return left > COOL_DOWN ? 0 : Math.max(0, left)
  }

  async function newerThan(age: number): Promise<Held> {
    if (held !== undefined && distance(time(), held.since) < age) return held
    const wait = stillCools()
    if (wait > 0) {
      if (held === undefined) throw unavailable(wait)
      return held
    }
    const isAway = coolsUntil !== undefined
    const reading = readOnce()
    // Nobody waits for an issuer that did not answer the last time, if there are keys.
    return held !== undefined && isAway ? held : reading
  }

  return {
    async find(header, token) {
      const { find } = await newerThan(MAX_KEY_AGE)
      try {
        return await find(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        return (await newerThan(MIN_KEY_AGE)).find(header, token)
      }
    },
    version() {
      if (held === undefined) return undefined
      if (distance(time(), held.since) >= MAX_KEY_AGE && stillCools() === 0) void readOnce()
      return held.version
    },
    read: async () => expectKeys(await readPublished()),
  }
}

/** In both directions, because the clock of the database can be set back. */
const distance = (one: number, other: number): number => Math.abs(one - other)

/** For a caller who may try again after so many milliseconds. The cause has its line in the log, and each caller would add one. */
const unavailable = (wait: number): Failure =>
  fail('issuer_unavailable', { headers: retryAfter(Math.max(1, Math.ceil(wait / 1_000))) })

/** Milliseconds and bytes. */
const LIMITS = { timeout: 5_000, maxBytes: 256 * 1_024 }
/** Milliseconds for which the address of the keys is known. */
const LOCATED_FOR = 3_600_000

/**
 * By the rules of outbound requests, although the operator has named the issuer: a document of the issuer names the address of the keys, and
 * tokens of strangers cause the requests.
 */
function createReader(
  { outbound, now }: KeysKernel,
  { issuer, jwks_url }: TrustedIssuer,
): () => Promise<Published> {
  let located: { readonly url: string; readonly since: number } | undefined

  async function fetchJson(url: string): Promise<unknown> {
    const headers = { accept: 'application/json', 'user-agent': 'gatehouse' }
    const { status, body, isWhole } = await outbound.send(url, { headers, ...LIMITS })
    if (status !== 200) throw new Error(`the answer of ${url} has status ${status}`)
    if (!isWhole) throw new Error(`the answer of ${url} is longer than ${LIMITS.maxBytes} bytes`)
    return JSON.parse(body.toString())
  }

  async function locate(): Promise<string> {
    if (jwks_url !== undefined) return jwks_url
    const time = now().getTime()
    if (located === undefined || distance(time, located.since) >= LOCATED_FOR)
      located = { url: keysUrlOf(issuer, await fetchJson(metadataUrl(issuer))), since: time }
    return located.url
  }

  return async () => {
    const published = await fetchJson(await locate())
    // The library checks the shape.
    const find = createLocalJWKSet(published as JSONWebKeySet)
    const { keys } = published as JSONWebKeySet
    const texts = keys.map((key) => JSON.stringify(key)).sort()
    return { find, version: hash('sha256', texts.join('\n')), isEmpty: keys.length === 0 }
  }
}

/** OpenID Connect Discovery 1.0, section 4.1. */
const metadataUrl = (issuer: string): string =>
  `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`

/** The document has to be that of the issuer itself (section 4.3). */
function keysUrlOf(issuer: string, document: unknown): string {
  const { issuer: named, jwks_uri } = (document ?? {}) as { issuer?: unknown; jwks_uri?: unknown } // any JSON
  if (named !== issuer)
    throw new Error(
      `${metadataUrl(issuer)} is of the issuer ${JSON.stringify(named)}, spelled in another way`,
    )
  if (typeof jwks_uri !== 'string') throw new Error(`${metadataUrl(issuer)} names no jwks_uri`)
  return jwks_uri
}
