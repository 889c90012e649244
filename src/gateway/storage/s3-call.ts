import type { Presence } from '#databases/drivers/driver.ts'
import { Failure } from '#kernel/errors.ts'
import { type OutboundAnswer, OutboundRefused } from '#kernel/http/outbound/outbound.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createKeyedSemaphore } from '#kernel/keyed-semaphore.ts'
import { fail } from '../errors.ts'
import { endpointOf, refusedEndpoint } from './addresses.ts'
import { createSdk, RefusedByServer, UnusableAnswer } from './sdk.ts'
import { type Asked, type AskedUrl, type OutputOf, type StorageServer, TOO_LARGE } from './sdk-jobs.ts'

export type StorageCaller = {
  readonly presence: Presence
  /** The key, whose calls share a quarter of the semaphore at most. Those to one server share half. */
  readonly payer: string
}

/** Calls of storage servers, each with the caller's credentials. Their failures are those of `STORAGE_FAILURES`. */
export type S3Calls = {
  /** `keys`: most keys of the answer. */
  send<A extends Asked>(
    server: StorageServer,
    caller: StorageCaller & { readonly keys: number },
    asked: A,
  ): Promise<OutputOf[A['operation']]>
  /** Needs no request. */
  signUrl(server: StorageServer, caller: StorageCaller, asked: AskedUrl): Promise<string>
  close(): Promise<void>
}

/**
 * Bytes of an answer. A key has at most 1,024, and each is written as up to three. The SDK's parser blocks the process, for up to 0.6 s with
 * 4 MiB, so a page of many very long keys has to be asked for in parts.
 */
const ROOM = { head: 65_536, key: 4_096, max: 1_048_576 }
/** Milliseconds for a whole call. */
const TIMEOUT = 30_000
/** Tags of an answer: a key has 26 on a server that returns all of its properties. */
const TAGS = { head: 1_000, key: 40 }
/** Memory for answers is at most 32 times 1 MiB. */
const CALLS = 32

export function createS3Calls(kernel: Pick<Kernel, 'outbound'>): S3Calls {
  const sdk = createSdk()
  const semaphore = createKeyedSemaphore(CALLS, {
    max: 200,
    patience: 5_000,
    refusal: () => fail('storage_busy', BUSY),
  })

  /** Waits for its turn, and translates failures. */
  async function inTurn<T>(
    server: StorageServer,
    payer: string,
    work: (server: StorageServer) => Promise<T>,
  ): Promise<T> {
    const endpoint = endpointOf(kernel, server.endpoint)
    const release = await semaphore.acquire(payer, new URL(endpoint).host)
    try {
      const { region, access_key_id, secret_key, session_token } = server
      // No other member of the body, which a thread may not take: a number with many digits.
      return await work({ endpoint, region, access_key_id, secret_key, session_token })
    } catch (error) {
      throw failureOf(error)
    } finally {
      release()
    }
  }

  return {
    send: (server, { presence, payer, keys }, asked) =>
      inTurn(server, payer, async (server) => {
        const { url, ...request } = await sdk.sign(payer, server, asked)
        const maxBytes = Math.min(ROOM.head + keys * ROOM.key, ROOM.max)
        const { signal } = presence
        const answer = await kernel.outbound.send(url, {
          ...request,
          timeout: TIMEOUT,
          maxBytes,
          signal: signal(),
        })
        if (!answer.isWhole) throw new UnusableAnswer(TOO_LARGE)
        const { status, body } = answer
        const maxTags = TAGS.head + keys * TAGS.key
        return sdk.read(payer, asked, { status, headers: flat(answer.headers), body, maxTags })
      }),
    signUrl: (server, { payer }, asked) =>
      inTurn(server, payer, (server) => sdk.signUrl(payer, server, asked)),
    close: sdk.close,
  }
}

const flat = (headers: OutboundAnswer['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]))

const BUSY = { headers: { 'retry-after': '1' } }

const CODES: ReadonlyMap<string, Parameters<typeof fail>[0]> = new Map([
  ['AccessDenied', 'storage_access_denied'],
  ['InvalidAccessKeyId', 'storage_access_denied'],
  ['SignatureDoesNotMatch', 'storage_access_denied'],
  ['NoSuchBucket', 'bucket_not_found'],
  ['NoSuchKey', 'object_not_found'],
  // An answer to HEAD has no body and therefore no code.
  ['NotFound', 'object_not_found'],
])

const MEMBERS: Readonly<Record<string, string>> = {
  AuthorizationHeaderMalformed: 'region',
  InvalidAccessKeyId: 'access_key_id',
  PermanentRedirect: 'endpoint and region',
  SignatureDoesNotMatch: 'secret_key',
}

function adviceOn(storageCode: string): string {
  const member = Object.hasOwn(MEMBERS, storageCode) ? MEMBERS[storageCode] : undefined
  return `The server answered ${storageCode}${member === undefined ? '' : `: check ${member}`}`
}

/** The details have the server's code but not its message, which could repeat the credentials. */
function failureOf(error: unknown): unknown {
  if (error instanceof Failure) return error
  if (error instanceof OutboundRefused) return refusedEndpoint(`It is not used: ${error.message}`, error)
  if (error instanceof RefusedByServer) return refusalOf(error)
  if (error instanceof UnusableAnswer)
    return fail('storage_unavailable', { cause: error, hint: error.message })
  if (!(error instanceof Error)) return error
  if (error.name === 'TimeoutError') return fail('storage_timeout', { cause: error })
  const code = 'code' in error ? error.code : undefined
  if (code === 'ENOTFOUND') return refusedEndpoint('There is no such host', error)
  return fail('storage_unavailable', {
    cause: error,
    hint: 'The connection failed: check host and port of endpoint, and http or https',
  })
}

function refusalOf(cause: RefusedByServer): Failure {
  const { status, code: named } = cause
  const isDenied = status === 401 || status === 403
  const code = (named && CODES.get(named)) || (isDenied ? 'storage_access_denied' : 'storage_unavailable')
  if (named !== undefined)
    return fail(code, { cause, hint: adviceOn(named), details: { storage_code: named } })
  return fail(code, {
    cause,
    ...(code === 'storage_unavailable' && {
      hint: `The server answered ${status} without a code of S3: check endpoint`,
    }),
  })
}
