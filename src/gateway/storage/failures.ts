import type { FailureTable } from '#kernel/errors.ts'

/** Failures of object storage (gateway.md 14). */
export const STORAGE_FAILURES = {
  invalid_endpoint: [400, 'endpoint is not the address of a storage server'],
  invalid_object_key: [400, 'This key cannot be used in a URL'],
  storage_access_denied: [403, 'The storage server refused the credentials or the access'],
  bucket_not_found: [404, 'There is no such bucket'],
  object_not_found: [404, 'There is no such object'],
  storage_busy: [503, 'Too many requests to storage servers are under way'],
  storage_unavailable: [502, 'The storage server did not give a usable answer'],
  storage_timeout: [504, 'The storage server did not answer in time'],
} as const satisfies FailureTable
