import { fail } from '#gateway/errors.ts'

/** The server's answer to a call, or the failure to ask it, as a sentence for the operator. It repeats no message of the server. */
export async function answered<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw failureOf(error)
  }
}

const REFUSED = new Set(['AccessDenied', 'InvalidAccessKeyId', 'SignatureDoesNotMatch'])

function failureOf(error: unknown): Error {
  const { name = '', code } = Object(error) as { name?: string; code?: unknown } // whatever was thrown
  const status = statusOf(error)
  if (REFUSED.has(name) || status === 401 || status === 403)
    return unavailable(
      'The object storage of the backups refuses the access key',
      'Check backups.s3.access_key_id and secret_key, and the rights of the key (docs/guides/backups.md)',
      error,
    )
  if (name === 'NoSuchBucket')
    return unavailable(
      'The bucket of the backups does not exist',
      'Create it, or change backups.location',
      error,
    )
  const reason = [status, code].find((one) => /^[A-Za-z0-9_]{1,64}$/.test(String(one ?? '')))
  return unavailable(
    `The object storage of the backups cannot be used (${reason ?? 'no answer'})`,
    'Check backups.s3.endpoint and region, and whether the server runs',
    error,
  )
}

export const unavailable = (message: string, hint: string, cause?: unknown) =>
  fail('backup_store_unavailable', { message, hint, cause })

/** Of the server's answer, if there was one. */
export const statusOf = (error: unknown): number | undefined =>
  (Object(error) as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode // set by the SDK
