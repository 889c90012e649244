import { isIP, type LookupFunction } from 'node:net'
import type { Agent, buildConnector, Dispatcher } from 'undici'
import { unlessAborted } from '../../abort.ts'
import type { Config } from '../../config/config.ts'
import { openedOnce } from '../../opened-once.ts'
import { createAddressPolicy } from './address-policy.ts'
import { createNameLookups, type Resolve } from './name-lookups.ts'

/**
 * Requests to addresses that callers or settings choose: webhooks, storage, social sign-in, the breach check (gateway.md 12).
 * https only, unless configured; never into a private network; without redirects; bounded in time and size.
 */
export type Outbound = {
  /** Throws `OutboundRefused` when the rules forbid it, or the error of the request. */
  send(url: string, request: OutboundRequest): Promise<OutboundAnswer>
  /** Why the URL is forbidden; undefined when it may be allowed. The addresses of a host name are checked when it is used. */
  refusal(url: string, except?: string): string | undefined
  close(): Promise<void>
}

export type OutboundRequest = {
  readonly method?: Dispatcher.HttpMethod
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** For the whole request, milliseconds. */
  readonly timeout: number
  /** Largest number of bytes of the answer's body that are read. */
  readonly maxBytes: number
  /** The status is enough: a body that fails, or has not ended in time, is returned as far as it has arrived. */
  readonly cutsBody?: true
  /** Aborts the request. */
  readonly signal?: AbortSignal
  /** The one URL that the rules do not hold for, in its normal form; its host is an address. */
  readonly except?: string | undefined
}

export type OutboundAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  /** False when the body is longer than `maxBytes`, or was cut. */
  readonly isWhole: boolean
}

/** The rules of outbound requests forbid this one; the message has the reason. */
export class OutboundRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'OutboundRefused'
  }
}

export type { Resolve }

type Keeping = {
  /**
   * False: each request has a connection of its own. A server may close one that is kept just when the next request comes on it, which then
   * fails; a caller could bring that about.
   */
  readonly keepsConnections?: boolean
}

/** `resolve` differs in tests. */
export function createOutboundRequests(
  { outbound: rules }: Pick<Config, 'outbound'>,
  resolve: Resolve = createNameLookups(),
  { keepsConnections = true }: Keeping = {},
): Outbound {
  const mayReach = createAddressPolicy(rules.allow_networks)
  const guard = { mayReach, lookup: guardedLookup(mayReach, sharedLookups(resolve)), keepsConnections }
  /** Loaded with the first request. */
  const client = openedOnce(() => openGuarded(guard))

  const direct = createDirectRequests({ connectTimeout: MAX_IDLE, idleTimeout: MAX_IDLE })

  const refusal = (url: string, except?: string): string | undefined => {
    if (isExcepted(url, except)) return undefined
    const { protocol, hostname, username, password } = URL.parse(url) ?? {}
    if (protocol !== 'https:' && !(protocol === 'http:' && rules.allow_http)) {
      return rules.allow_http
        ? 'only http and https are allowed'
        : 'only https is allowed (outbound.allow_http: true allows plain http)'
    }
    if (username !== '' || password !== '') return 'a user or password in the address is not allowed'
    return isForbiddenLiteral(mayReach, hostname ?? '') ? PRIVATE : undefined
  }

  return {
    refusal,
    async send(url, request) {
      if (isExcepted(url, request.except)) return direct.send(url, request)
      const refused = refusal(url)
      if (refused !== undefined) throw new OutboundRefused(refused)
      return exchange(await client.get(), url, request)
    },
    async close() {
      await (await client.current())?.agent.destroy()
      await direct.close()
    },
  }
}

const isExcepted = (url: string, except: string | undefined): boolean =>
  except !== undefined && URL.parse(url)?.href === except

/** Milliseconds. */
type DirectOptions = { readonly connectTimeout: number; readonly idleTimeout: number }

/** Requests to an address that the operator configured, without the rules. Otherwise as above; `close` waits for the last answer. */
export function createDirectRequests({
  connectTimeout,
  idleTimeout,
}: DirectOptions): Pick<Outbound, 'send' | 'close'> {
  const client = openedOnce(async (): Promise<Client> => {
    const { Agent, request } = await import('undici')
    const connect = { timeout: connectTimeout }
    return { request, agent: new Agent({ connect, keepAliveTimeout: idleTimeout, allowH2: false }) }
  })
  return {
    send: async (url, request) => exchange(await client.get(), url, request),
    close: async () => (await client.current())?.agent.close(),
  }
}

/** undici follows no redirect by itself. */
async function exchange(
  { request, agent }: Client,
  url: string,
  asked: OutboundRequest,
): Promise<OutboundAnswer> {
  const { method = 'GET', headers = {}, body, timeout, maxBytes, cutsBody = false, signal } = asked
  const { ending, settle } = endsBy(timeout, signal)
  try {
    const answering = request(url, {
      method,
      headers,
      body: body ?? null,
      dispatcher: agent,
      signal: ending,
      // One limit for all of it.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    // undici 8 notices the signal only when it is connected.
    const answer = await unlessAborted(ending, answering)
    const read = await readUpTo(maxBytes, answer.body, cutsBody)
    return { status: answer.statusCode, headers: answer.headers, ...read }
  } finally {
    settle()
  }
}

/**
 * A signal that aborts with the caller's or, as a `TimeoutError`, after this time, until it is settled. `AbortSignal.any` and `AbortSignal.timeout`
 * keep their parts until the time is over, and cost four times as much.
 */
function endsBy(timeout: number, signal: AbortSignal | undefined) {
  const controller = new AbortController()
  const isLate = () => controller.abort(new DOMException('There was no answer in time', 'TimeoutError'))
  const stop = () => controller.abort(signal?.reason)
  const timer = setTimeout(isLate, timeout).unref()
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  return {
    ending: controller.signal,
    settle(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    },
  }
}

const PRIVATE = 'the address is in a private network (outbound.allow_networks opens exceptions)'

type Guard = Required<Keeping> & {
  readonly mayReach: (address: string) => boolean
  readonly lookup: LookupFunction
}

type Client = Pick<typeof import('undici'), 'request'> & { readonly agent: Agent }

async function openGuarded({ mayReach, lookup, keepsConnections }: Guard): Promise<Client> {
  const { Agent, buildConnector, request } = await import('undici')
  const connect = buildConnector({ lookup, allowH2: false })
  const guarded: buildConnector.connector = (options, callback) => {
    // An address that is written out is never looked up.
    if (isForbiddenLiteral(mayReach, options.hostname)) callback(new OutboundRefused(PRIVATE), null)
    else connect(options, callback)
  }
  const idle = { keepAliveTimeout: MAX_IDLE, keepAliveMaxTimeout: MAX_IDLE }
  const pipelining = keepsConnections ? 1 : 0
  return { request, agent: new Agent({ connect: guarded, allowH2: false, pipelining, ...idle }) }
}

/**
 * Milliseconds. A server may ask for ten minutes (header Keep-Alive), and each host and port has connections of its own: a caller who names
 * many would take all file descriptors.
 */
const MAX_IDLE = 2_000

/** A host that is an address, with or without the brackets of a URL, and one that may not be reached. */
function isForbiddenLiteral(mayReach: (address: string) => boolean, host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '')
  return isIP(address) !== 0 && !mayReach(address)
}

/**
 * The lookup of the connection itself: what it answers is what is connected to, so a name that points elsewhere the
 * second time it is asked for (DNS rebinding) gains nothing.
 */
function guardedLookup(mayReach: (address: string) => boolean, resolve: Resolve): LookupFunction {
  return (hostname, { family, all }, callback) =>
    resolve(hostname, { all: true, ...(family === undefined ? {} : { family }) }, (error, addresses) => {
      if (error !== null) return callback(error, [])
      const open = addresses.filter(({ address }) => mayReach(address))
      const [first] = open
      if (first === undefined) callback(new OutboundRefused(PRIVATE), [])
      else if (all === true) callback(null, open)
      else callback(null, first.address, first.family)
    })
}

/** Requests to a host share a look-up that runs, however many there are. */
function sharedLookups(resolve: Resolve): Resolve {
  const running = new Map<string, Parameters<Resolve>[2][]>()
  return (hostname, options, callback) => {
    const key = `${options.family ?? 0} ${hostname}`
    const waiting = running.get(key)
    if (waiting !== undefined) return void waiting.push(callback)
    const callbacks = [callback]
    running.set(key, callbacks)
    resolve(hostname, options, (error, addresses) => {
      running.delete(key)
      for (const answer of callbacks) answer(error, addresses)
    })
  }
}

async function readUpTo(
  maxBytes: number,
  stream: AsyncIterable<Buffer>,
  cuts: boolean,
): Promise<Pick<OutboundAnswer, 'body' | 'isWhole'>> {
  const chunks: Buffer[] = []
  let size = 0
  let isCut = false
  try {
    // Leaving the loop early ends the stream, and the connection with it.
    for await (const chunk of stream) {
      chunks.push(chunk)
      size += chunk.length
      if (size > maxBytes) break
    }
  } catch (error) {
    if (!cuts) throw error
    isCut = true
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), isWhole: size <= maxBytes && !isCut }
}
