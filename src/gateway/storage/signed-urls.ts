import type { Kernel } from '#kernel/kernel.ts'
import { requireUsableKey } from './addresses.ts'
import type { ObjectOf } from './objects.ts'
import type { S3Calls, StorageCaller } from './s3-call.ts'

type Download = ObjectOf & { readonly expires_in?: number | undefined }
type Upload = Download & { readonly content_type?: string | undefined }

/** Seconds for which a URL is valid. */
const EXPIRES_IN = 900

/** A URL by which the object can be read without credentials until it expires. */
export async function signDownload(kernel: Kernel, calls: S3Calls, asked: Download, caller: StorageCaller) {
  const { bucket, key } = asked
  requireUsableKey(key)
  const { options, expires_at } = signing(kernel, asked)
  const input = { Bucket: bucket, Key: key }
  const url = await calls.signUrl(asked, caller, { operation: 'get', input, ...options })
  return { url, method: 'GET', expires_at }
}

/** A URL by which the object can be written without credentials until it expires, with exactly these headers. */
export async function signUpload(kernel: Kernel, calls: S3Calls, asked: Upload, caller: StorageCaller) {
  const { bucket, key, content_type: type } = asked
  requireUsableKey(key)
  const { options, expires_at } = signing(kernel, asked)
  const input = { Bucket: bucket, Key: key, ...(type !== undefined && { ContentType: type }) }
  const url = await calls.signUrl(asked, caller, { operation: 'put', input, ...options })
  const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
  return { url, method: 'PUT', headers, expires_at }
}

function signing({ now }: Kernel, { expires_in: expiresIn = EXPIRES_IN }: Download) {
  const signingDate = now()
  return {
    options: { expiresIn, signingDate },
    expires_at: new Date(signingDate.getTime() + expiresIn * 1_000),
  }
}
