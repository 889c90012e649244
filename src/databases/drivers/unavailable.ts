import { fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** `wait`: milliseconds after which another attempt makes sense. */
export const unavailable = (wait: number): Failure =>
  fail('client_unavailable', { headers: { 'retry-after': String(Math.max(1, Math.ceil(wait / 1_000))) } })
