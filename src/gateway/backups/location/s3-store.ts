import { createHash } from 'node:crypto'
import { pipeline, type Readable, Transform } from 'node:stream'
import type { S3Client } from '@aws-sdk/client-s3'
import { FIXED } from '#gateway/storage/sdk-settings.ts'
import type { Config } from '#kernel/config/config.ts'
import { readS3Location } from '#kernel/config/sections/backups.ts'
import type { BackupStore, OpenBackup, Written } from './backup-store.ts'
import { answered, statusOf, unavailable } from './s3-failures.ts'

/** Bytes of a part, which one job holds in memory. */
const PART = 16 * 1024 * 1024
/** S3 allows no more. */
const MAX_PARTS = 10_000
/** Bytes that one request reads: a reader that pauses holds no connection. */
const RANGE = 4 * 1024 * 1024
const PIECE = 262_144
/** Milliseconds for a call without content: a stop of the service may wait for three of them. */
const SHORT = 5_000
/** Milliseconds for a part or a range. */
const LONG = 600_000

type Sdk = typeof import('@aws-sdk/client-s3')
type Connection = { readonly sdk: Sdk; readonly client: S3Client }
type Target = { readonly Bucket: string; readonly Key: string }

const short = () => ({ abortSignal: AbortSignal.timeout(SHORT) })
const long = (signal: AbortSignal) => ({
  abortSignal: AbortSignal.any([signal, AbortSignal.timeout(LONG)]),
})

/** Backups as objects. The operator names the server, so the outbound rules do not apply to it, as with databases. */
export function createS3Store({ backups: { s3 } }: Pick<Config, 'backups'>): BackupStore {
  const connected = async <T>(work: (connection: Connection) => Promise<T>): Promise<T> => {
    const connection = await connect(s3)
    try {
      return await work(connection)
    } finally {
      connection.client.destroy()
    }
  }
  return {
    write: (location, source, signal) =>
      connected((connection) => upload(connection, targetOf(location), source, signal)),
    async open(location) {
      const connection = await connect(s3)
      const opened = await openObject(connection, targetOf(location)).catch((error: unknown) => {
        connection.client.destroy()
        throw error
      })
      if (opened === undefined) connection.client.destroy()
      return opened
    },
    remove: (location) => connected((connection) => removeObject(connection, targetOf(location))),
    discard: (location) =>
      connected(async (connection) => {
        await abortUploads(connection, targetOf(location))
        await removeObject(connection, targetOf(location))
      }),
  }
}

/** Throws a sentence for the operator unless the bucket can be listed. */
export async function requireBucket({ backups }: Pick<Config, 'backups'>): Promise<void> {
  const place = readS3Location(backups.location ?? '')
  if (place === undefined) return
  const { sdk, client } = await connect(backups.s3)
  try {
    const asked = { Bucket: place.bucket, Prefix: place.key, MaxKeys: 1 }
    await answered(client.send(new sdk.ListObjectsV2Command(asked), short()))
  } finally {
    client.destroy()
  }
}

async function connect(s3: Config['backups']['s3']): Promise<Connection> {
  const { endpoint, region, access_key_id: accessKeyId, secret_key: secretAccessKey } = s3
  if (endpoint === undefined || accessKeyId === undefined || secretAccessKey === undefined)
    throw unavailable(
      'The backup is in object storage, and its server is not configured',
      'Set backups.s3.endpoint, access_key_id and secret_key',
    )
  // 50 modules, which a service without such backups never needs.
  const sdk = await import('@aws-sdk/client-s3')
  const client = new sdk.S3Client({
    ...FIXED,
    // The parts are in memory, so they can be sent again.
    maxAttempts: 3,
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    requestHandler: { connectionTimeout: SHORT, socketTimeout: 60_000 },
  })
  boundAnswers(client)
  return { sdk, client }
}

/** No answer is longer than a range: the SDK keeps all of it in memory, also of a server that ignores the range, or never ends. */
function boundAnswers({ middlewareStack }: S3Client): void {
  middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args)
      const response = result.response as { body: Readable } // of the SDK's handler for Node.js
      response.body = pipeline(response.body, bounded(), () => {})
      return result
    },
    { step: 'deserialize', priority: 'low', name: 'boundAnswers' },
  )
}

function bounded(): Transform {
  let size = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      size += chunk.length
      if (size <= RANGE) callback(null, chunk)
      else callback(new Error('the answer is longer than a range'))
    },
  })
}

function targetOf(location: string): Target {
  const place = readS3Location(location)
  if (place === undefined) throw new Error('the backup is not in object storage')
  return { Bucket: place.bucket, Key: place.key }
}

/** The object appears with the last call, as a whole. */
async function upload(
  { sdk, client }: Connection,
  target: Target,
  source: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<Written> {
  const hash = createHash('sha256')
  let size = 0
  const { UploadId } = await answered(client.send(new sdk.CreateMultipartUploadCommand(target), short()))
  const parts: { readonly PartNumber: number; readonly ETag: string | undefined }[] = []
  try {
    for await (const Body of partsOf(source, (chunk) => hash.update(chunk))) {
      signal.throwIfAborted()
      const PartNumber = parts.length + 1
      if (PartNumber > MAX_PARTS) throw tooLong()
      const part = new sdk.UploadPartCommand({ ...target, UploadId, PartNumber, Body })
      const { ETag } = await answered(client.send(part, long(signal)))
      parts.push({ PartNumber, ETag })
      size += Body.length
    }
    signal.throwIfAborted()
    const whole = { ...target, UploadId, MultipartUpload: { Parts: parts } }
    await answered(client.send(new sdk.CompleteMultipartUploadCommand(whole), long(signal)))
  } catch (error) {
    await client.send(new sdk.AbortMultipartUploadCommand({ ...target, UploadId }), short()).catch(() => {})
    throw error
  }
  return { size, sha256: hash.digest('hex') }
}

const tooLong = () =>
  unavailable('The backup is longer than 156 GiB, the most for a bucket', 'Keep it in a folder')

/** One buffer for all parts: each is sent before the next one is filled. */
async function* partsOf(
  source: AsyncIterable<Buffer>,
  onChunk: (chunk: Buffer) => void,
): AsyncGenerator<Buffer> {
  const part = Buffer.allocUnsafe(PART)
  let filled = 0
  for await (const chunk of source) {
    onChunk(chunk)
    for (let at = 0; at < chunk.length; ) {
      const copied = chunk.copy(part, filled, at)
      at += copied
      filled += copied
      if (filled < PART) continue
      yield part
      filled = 0
    }
  }
  if (filled > 0) yield part.subarray(0, filled)
}

async function openObject({ sdk, client }: Connection, target: Target): Promise<OpenBackup | undefined> {
  const head = await answered(
    client.send(new sdk.HeadObjectCommand(target), short()).catch((error: unknown) => {
      if (statusOf(error) === 404) return undefined
      throw error
    }),
  )
  if (head === undefined) return undefined
  const { ContentLength: size = 0 } = head
  const closing = new AbortController()
  return {
    size,
    async *content(signal = closing.signal) {
      for (let at = 0; at < size; at += RANGE) {
        const Range = `bytes=${at}-${Math.min(at + RANGE, size) - 1}`
        const bytes = await answered(
          client
            .send(
              new sdk.GetObjectCommand({ ...target, Range }),
              long(AbortSignal.any([closing.signal, signal])),
            )
            .then(({ Body }) => Body?.transformToByteArray()),
        )
        if (bytes === undefined) return
        const range = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
        for (let from = 0; from < range.length; from += PIECE) yield range.subarray(from, from + PIECE)
      }
    },
    async close() {
      closing.abort()
      client.destroy()
    },
  }
}

async function removeObject({ sdk, client }: Connection, target: Target): Promise<void> {
  await answered(client.send(new sdk.DeleteObjectCommand(target), short()))
}

/** Those of a process that was killed: parts without an object, which cost room until they are removed. */
async function abortUploads({ sdk, client }: Connection, { Bucket, Key }: Target): Promise<void> {
  const listed = new sdk.ListMultipartUploadsCommand({ Bucket, Prefix: Key })
  const { Uploads = [] } = await answered(client.send(listed, short()))
  for (const { Key: found, UploadId } of Uploads) {
    if (found !== Key) continue
    await answered(client.send(new sdk.AbortMultipartUploadCommand({ Bucket, Key, UploadId }), short()))
  }
}
