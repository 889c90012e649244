import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import type { Asked, AskedUrl, SignedCall, StorageServer } from './sdk-jobs.ts'
import { FIXED } from './sdk-settings.ts'

/** The request as the SDK has signed it. */
type SignedRequest = {
  readonly method: SignedCall['method']
  readonly protocol: string
  readonly hostname: string
  readonly port?: number | undefined
  readonly path: string
  readonly query?: Readonly<Record<string, string | string[] | null>>
  readonly headers: Readonly<Record<string, string>>
}

/** The request that asks for this. None of them has a body. */
export async function signRequest(server: StorageServer, asked: Asked): Promise<SignedCall> {
  let request: SignedRequest | undefined
  const client = clientOf(server)
  client.middlewareStack.add(
    () => async (args) => {
      request = args.request as SignedRequest // the SDK's HttpRequest
      return { output: { $metadata: {} }, response: undefined }
    },
    // After the signature.
    { step: 'finalizeRequest', priority: 'low' },
  )
  await send(client, asked)
  if (request === undefined) throw new Error('the SDK signed no request')
  const { host: _, ...headers } = request.headers
  return { method: request.method, url: urlOf(request), headers }
}

/** Only a content type is among the signed headers. */
export function signUrl(server: StorageServer, asked: AskedUrl): Promise<string> {
  const { expiresIn, signingDate } = asked
  const options = { expiresIn, signingDate, signableHeaders: new Set(['content-type']) }
  const client = clientOf(server)
  return asked.operation === 'get'
    ? getSignedUrl(client, new GetObjectCommand(asked.input), options)
    : getSignedUrl(client, new PutObjectCommand(asked.input), options)
}

export async function send(client: S3Client, { operation, input }: Asked): Promise<object> {
  switch (operation) {
    case 'list':
      return client.send(new ListObjectsV2Command(input))
    case 'head':
      return client.send(new HeadObjectCommand(input))
    case 'delete':
      return client.send(new DeleteObjectCommand(input))
  }
}

const clientOf = ({ endpoint, region, access_key_id, secret_key, session_token }: StorageServer): S3Client =>
  new S3Client({
    ...FIXED,
    endpoint,
    region,
    credentials: {
      accessKeyId: access_key_id,
      secretAccessKey: secret_key,
      ...(session_token !== undefined && { sessionToken: session_token }),
    },
  })

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
