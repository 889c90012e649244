import { requireUsableKey } from './addresses.ts'
import type { S3Calls, StorageCaller } from './s3-call.ts'
import type { StorageServer } from './sdk-jobs.ts'

type InBucket = StorageServer & { readonly bucket: string }
export type ObjectOf = InBucket & { readonly key: string }
type Listing = InBucket & {
  readonly prefix?: string | undefined
  readonly delimiter?: string | undefined
  readonly continuation_token?: string | undefined
  readonly max_keys?: number | undefined
}

const KEYS = { byDefault: 200, max: 1_000 }

export async function listObjects({ send }: S3Calls, asked: Listing, caller: StorageCaller) {
  const { bucket, prefix = '', delimiter = '', continuation_token: token = '' } = asked
  const keys = Math.min(Math.max(asked.max_keys ?? KEYS.byDefault, 1), KEYS.max)
  const input = {
    Bucket: bucket,
    MaxKeys: keys,
    // XML cannot contain every character of a key.
    EncodingType: 'url' as const,
    ...(prefix !== '' && { Prefix: prefix }),
    ...(delimiter !== '' && { Delimiter: delimiter }),
    ...(token !== '' && { ContinuationToken: token }),
  }
  const found = await send(asked, { ...caller, keys }, { operation: 'list', input })
  const { Contents: contents = [], CommonPrefixes: prefixes = [] } = found
  const textOf = found.EncodingType === 'url' ? decodedKey : plainKey
  return {
    bucket,
    prefix,
    delimiter: delimiter === '' ? null : delimiter,
    objects: contents.map(({ Key, Size, LastModified, ETag, StorageClass }) => ({
      key: textOf(Key),
      size: wholeNumber(Size),
      last_modified: LastModified ?? null,
      etag: ETag ?? null,
      storage_class: StorageClass ?? null,
    })),
    common_prefixes: prefixes.map(({ Prefix }) => textOf(Prefix)),
    key_count: contents.length + prefixes.length,
    is_truncated: found.IsTruncated ?? false,
    next_continuation_token: found.NextContinuationToken ?? null,
  }
}

const plainKey = (key = ''): string => key

/** The SDK also reads Infinity, NaN and fractions. */
const wholeNumber = (size = 0): number => (Number.isSafeInteger(size) ? size : 0)

/** `encoding-type=url` writes a space as `+`. */
function decodedKey(key = ''): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '))
  } catch {
    return key
  }
}

export async function findObject({ send }: S3Calls, asked: ObjectOf, caller: StorageCaller) {
  const { bucket, key } = asked
  requireUsableKey(key)
  const input = { Bucket: bucket, Key: key }
  const found = await send(asked, { ...caller, keys: 1 }, { operation: 'head', input })
  return {
    bucket,
    key,
    size: wholeNumber(found.ContentLength),
    last_modified: found.LastModified ?? null,
    etag: found.ETag ?? null,
    content_type: found.ContentType ?? null,
    storage_class: found.StorageClass ?? null,
    metadata: found.Metadata ?? {},
  }
}

/** Storage servers answer in the same way when there is no such object. */
export async function deleteObject({ send }: S3Calls, asked: ObjectOf, caller: StorageCaller) {
  const { bucket, key } = asked
  requireUsableKey(key)
  const input = { Bucket: bucket, Key: key }
  await send(asked, { ...caller, keys: 1 }, { operation: 'delete', input })
  return { bucket, key }
}
