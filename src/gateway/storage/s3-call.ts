import type { S3Client } from '@aws-sdk/client-s3'
import type { Presence } from '#databases/drivers/driver.ts'
import { OutboundRefused } from '#kernel/http/outbound.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createKeyedSemaphore } from '#kernel/keyed-semaphore.ts'
import { fail } from '../errors.ts'
import { endpointOf, refusedEndpoint } from './addresses.ts'
import { createS3Client, type StorageServer, UnusableAnswer } from './s3-client.ts'

export type StorageCaller = {
  readonly presence: Presence
  /** The key, whose calls share a quarter of the semaphore at most. Those to one server share half. */
  readonly payer: string
}

export type CallOptions = StorageCaller & {
  /** Most keys of the answer. */
  readonly keys: number
}

/** Runs one call on a storage server, with a client of its own, and translates its failures. */
export type S3Call = <T>(
  server: StorageServer,
  options: CallOptions,
  work: (client: S3Client) => Promise<T>,
) => Promise<T>

/**
 * Bytes of an answer. A key has at most 1,024, and each is written as up to three. The SDK's parser blocks the process, for up to 0.6 s with
 * 4 MiB, so a page of many very long keys has to be asked for in parts.
 */
const ROOM = { head: 65_536, key: 4_096, max: 1_048_576 }
/** Tags of an answer: a key has 26 on a server that returns all of its properties. */
const TAGS = { head: 1_000, key: 40 }
/** Memory for answers is at most 32 times 1 MiB. */
const CALLS = 32

export function createS3Calls(kernel: Pick<Kernel, 'outbound'>): S3Call {
  const semaphore = createKeyedSemaphore(CALLS, {
    max: 200,
    patience: 5_000,
    refusal: () => fail('storage_busy', BUSY),
  })
  return async (server, { presence, payer, keys }, work) => {
    const endpoint = endpointOf(kernel, server.endpoint)
    const release = await semaphore.acquire(payer, new URL(endpoint).host)
    try {
      const sending = {
        signal: presence.signal(),
        maxBytes: Math.min(ROOM.head + keys * ROOM.key, ROOM.max),
        maxTags: TAGS.head + keys * TAGS.key,
      }
      return await work(await createS3Client(kernel, { ...server, endpoint }, sending))
    } catch (error) {
      throw failureOf(error)
    } finally {
      release()
    }
  }
}

const BUSY = { headers: { 'retry-after': '1' } }

const CODES: ReadonlyMap<string, Parameters<typeof fail>[0]> = new Map([
  ['AccessDenied', 'storage_access_denied'],
  ['InvalidAccessKeyId', 'storage_access_denied'],
  ['SignatureDoesNotMatch', 'storage_access_denied'],
  ['NoSuchBucket', 'bucket_not_found'],
  ['NoSuchKey', 'object_not_found'],
  // An answer to HEAD has no body and therefore no code.
  ['NotFound', 'object_not_found'],
  ['TimeoutError', 'storage_timeout'],
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

const hintWithoutCode = (status: number | undefined): string =>
  status === undefined
    ? 'The connection failed: check host and port of endpoint, and http or https'
    : `The server answered ${status} without a code of S3: check endpoint`

/** For the log: what the server has answered may repeat the credentials, so only errors without an answer are kept. */
const causeOf = (error: Error, status: number | undefined): Error =>
  error instanceof UnusableAnswer ||
  (status === undefined && 'code' in error && typeof error.code === 'string')
    ? error
    : new UnusableAnswer(`the storage server answered ${status ?? 'nothing'}`)

/** The details have the server's code but not its message, which could repeat the credentials. */
function failureOf(error: unknown): unknown {
  if (error instanceof OutboundRefused) return refusedEndpoint(`It is not used: ${error.message}`, error)
  if (!(error instanceof Error)) return error
  if ('code' in error && error.code === 'ENOTFOUND') return refusedEndpoint('There is no such host', error)
  const { $metadata: answer } = error as { $metadata?: { httpStatusCode?: number } } // set by the SDK
  const isDenied = answer?.httpStatusCode === 401 || answer?.httpStatusCode === 403
  const code = CODES.get(error.name) ?? (isDenied ? 'storage_access_denied' : 'storage_unavailable')
  // The SDK names an answer without a code of S3 `Error`.
  const isCode =
    answer?.httpStatusCode !== undefined && error.name !== 'Error' && /^[A-Za-z]{1,64}$/.test(error.name)
  return fail(code, {
    cause: causeOf(error, answer?.httpStatusCode),
    ...(code === 'storage_unavailable' && { hint: hintWithoutCode(answer?.httpStatusCode) }),
    ...(error instanceof UnusableAnswer && { hint: error.message }),
    ...(isCode && { hint: adviceOn(error.name), details: { storage_code: error.name } }),
  })
}
