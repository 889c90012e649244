import type { FailureTable } from '#kernel/errors.ts'

/** Failures before a stream begins. */
export const REALTIME_FAILURES = {
  policy_not_live: [400, 'The policies of this table cannot be followed'],
  too_many_streams: [429, 'There are too many streams'],
  invalid_ticket: [401, 'The ticket is unknown, used or expired'],
  key_in_query: [400, 'A stream takes no API key in its address'],
} as const satisfies FailureTable
