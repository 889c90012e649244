/** A date of HTTP (RFC 9110 section 5.6.7), without its obsolete forms. */
const DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/

/** Milliseconds that a `Retry-After` asks to wait (RFC 9110 section 10.2.3); 0 for none, and for a malformed one. */
export function waitAskedBy(header: string | string[] | undefined, now: Date): number {
  if (typeof header !== 'string') return 0
  if (/^\d+$/.test(header)) return Number(header) * 1_000
  const wait = DATE.test(header) ? Date.parse(header) - now.getTime() : 0
  return wait > 0 ? wait : 0
}
