import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3'
import type { OutboundAnswer } from '#kernel/http/outbound.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** An S3-compatible server and the caller's credentials for it. They are used for one call only. */
export type StorageServer = {
  /** The address without user, query and fragment. */
  readonly endpoint: string
  readonly region: string
  readonly access_key_id: string
  readonly secret_key: string
  readonly session_token?: string | undefined
}

type Sending = {
  readonly signal: AbortSignal
  /** Most bytes of an answer. */
  readonly maxBytes: number
  /** Most tags in an answer. */
  readonly maxTags: number
}

/** Milliseconds for a whole call. */
const TIMEOUT = 30_000

/** A client whose requests follow the outbound rules. It is made for one call: connections are those of `kernel.outbound`. */
export async function createS3Client(
  kernel: Pick<Kernel, 'outbound'>,
  { endpoint, region, access_key_id, secret_key, session_token }: StorageServer,
  sending: Sending,
): Promise<S3Client> {
  // 50 modules, which a service without object storage never needs.
  const { S3Client } = await import('@aws-sdk/client-s3')
  return new S3Client({
    ...FIXED,
    endpoint,
    region,
    credentials: {
      accessKeyId: access_key_id,
      secretAccessKey: secret_key,
      ...(session_token !== undefined && { sessionToken: session_token }),
    },
    requestHandler: createSender(kernel, sending),
  })
}

/** Every setting that the SDK would otherwise look up in the environment and in files of the operator. */
export const FIXED = {
  // Servers other than Amazon's have no host name for each bucket.
  forcePathStyle: true,
  maxAttempts: 1,
  retryMode: 'standard',
  userAgentAppId: 'gatehouse',
  authSchemePreference: ['sigv4'],
  sigv4aSigningRegionSet: [],
  disableClockSkewCorrection: false,
  defaultsMode: 'standard',
  useArnRegion: false,
  useDualstackEndpoint: false,
  useFipsEndpoint: false,
  disableMultiregionAccessPoints: true,
  disableS3ExpressSessionAuth: true,
  requestChecksumCalculation: 'WHEN_REQUIRED',
  responseChecksumValidation: 'WHEN_REQUIRED',
} as const satisfies S3ClientConfig

/** The request as the SDK has signed it. */
type SignedRequest = {
  readonly method: string
  readonly protocol: string
  readonly hostname: string
  readonly port?: number | undefined
  readonly path: string
  readonly query?: Readonly<Record<string, string | string[] | null>>
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
}

function createSender({ outbound }: Pick<Kernel, 'outbound'>, { signal, maxBytes, maxTags }: Sending) {
  return {
    async handle(request: SignedRequest) {
      const { method, body } = request
      const { host: _, ...headers } = request.headers
      const answer = await outbound.send(urlOf(request), {
        method: method as 'GET', // the SDK's commands use methods of HTTP only
        headers,
        ...(typeof body === 'string' && body !== '' && { body }),
        timeout: TIMEOUT,
        maxBytes,
        signal,
      })
      expectParseable(answer, maxTags)
      return { response: { statusCode: answer.status, headers: flat(answer.headers), body: answer.body } }
    },
    updateHttpClientConfig: () => {},
    httpHandlerConfigs: () => ({}),
  }
}

/** The answer is not one of a storage server. The message is for the caller. */
export class UnusableAnswer extends Error {}

/**
 * The SDK's parser and the answer made from it take more time for tags than for text: 0.4 MB of empty tags would be an answer of 3 MB. The time
 * also grows with the square of the number of document types, which no storage server sends (@aws-sdk/xml-builder 3.972, `isNext`).
 */
function expectParseable({ isWhole, body }: OutboundAnswer, maxTags: number): void {
  if (!isWhole || countTags(body, maxTags) > maxTags)
    throw new UnusableAnswer('Its answer is too large; ask for fewer keys with max_keys')
  if (/<!doctype/i.test(body.toString('latin1')))
    throw new UnusableAnswer('Its answer has a document type, which no storage server sends')
}

/** Counts no further than one beyond `max`. */
function countTags(body: Buffer, max: number): number {
  let count = 0
  for (let at = body.indexOf('<'); at !== -1 && count <= max; at = body.indexOf('<', at + 1)) count++
  return count
}

const flat = (headers: OutboundAnswer['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]))

function urlOf({ protocol, hostname, port, path, query = {} }: SignedRequest): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value ?? ''].flat().map((one) => `${encoded(name)}=${encoded(one)}`),
  )
  const origin = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`
  return `${origin}${path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`
}

/** As Signature Version 4 encodes: all but the unreserved characters of RFC 3986. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
