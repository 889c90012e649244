import type { Random } from '#kernel/random.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Milliseconds before each attempt, after the one before it (gateway.md 12). */
const DELAYS = [0, 5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR] as const

/** Each delay is up to this share longer or shorter, so that the deliveries of an outage do not come back at once. */
const JITTER = 0.2

/** A longer wait that an endpoint asks for is cut to this. It is longer than all delays. */
export const MAX_RETRY_AFTER = 24 * HOUR

/** Milliseconds until the next attempt, after so many failed ones, or longer if the endpoint has asked; undefined after the last. */
export function delayAfter(attempts: number, random: Random, asked = 0): number | undefined {
  const delay = DELAYS[attempts]
  if (delay === undefined) return undefined
  const share = random(4).readUInt32BE() / 0xffff_ffff
  const jittered = Math.round(delay * (1 - JITTER + 2 * JITTER * share))
  return Math.max(jittered, Math.min(asked, MAX_RETRY_AFTER))
}

/** A date of HTTP (RFC 9110 section 5.6.7), without its obsolete forms. */
const DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/

/** Milliseconds that a `Retry-After` asks to wait (RFC 9110 section 10.2.3); 0 for none, and for a malformed one. */
export function waitAskedBy(header: string | string[] | undefined, now: Date): number {
  if (typeof header !== 'string') return 0
  if (/^\d+$/.test(header)) return Number(header) * 1_000
  const wait = DATE.test(header) ? Date.parse(header) - now.getTime() : 0
  return wait > 0 ? wait : 0
}
