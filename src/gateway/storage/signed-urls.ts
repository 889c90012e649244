import type { Kernel } from '#kernel/kernel.ts'
import { requireUsableKey } from './addresses.ts'
import type { ObjectOf } from './objects.ts'
import type { S3Call, StorageCaller } from './s3-call.ts'

export type Download = ObjectOf & { readonly expires_in?: number | undefined }
export type Upload = Download & { readonly content_type?: string | undefined }

/** Seconds for which a URL is valid. */
const EXPIRES_IN = 900

/** A URL by which the object can be read without credentials until it expires. */
export async function signDownload(kernel: Kernel, call: S3Call, asked: Download, caller: StorageCaller) {
  const { bucket, key } = asked
  requireUsableKey(key)
  const { GetObjectCommand } = await import('@aws-sdk/client-s3')
  const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner')
  const { options, expires_at } = signing(kernel, asked)
  const command = new GetObjectCommand({ Bucket: bucket, Key: key })
  const url = await call(asked, { ...caller, keys: 0 }, (client) => getSignedUrl(client, command, options))
  return { url, method: 'GET', expires_at }
}

/** A URL by which the object can be written without credentials until it expires, with exactly these headers. */
export async function signUpload(kernel: Kernel, call: S3Call, asked: Upload, caller: StorageCaller) {
  const { bucket, key, content_type: type } = asked
  requireUsableKey(key)
  const { PutObjectCommand } = await import('@aws-sdk/client-s3')
  const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner')
  const { options, expires_at } = signing(kernel, asked)
  const content = type === undefined ? {} : { ContentType: type }
  const command = new PutObjectCommand({ Bucket: bucket, Key: key, ...content })
  const url = await call(asked, { ...caller, keys: 0 }, (client) => getSignedUrl(client, command, options))
  const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
  return { url, method: 'PUT', headers, expires_at }
}

function signing({ now }: Kernel, { expires_in: expiresIn = EXPIRES_IN }: Download) {
  const signingDate = now()
  return {
    options: { expiresIn, signingDate, signableHeaders: new Set(['content-type']) },
    expires_at: new Date(signingDate.getTime() + expiresIn * 1_000),
  }
}
