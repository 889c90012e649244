/** The claim of this name, or at this JSON Pointer (RFC 6901). Names may have dots and slashes, so only a slash in front begins a path. */
export function claimAt(payload: object, name: string): unknown {
  if (!name.startsWith('/')) return memberOf(payload, name)
  return name
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(memberOf, payload)
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name] // it has this member
    : undefined

/** A number that is read as it was written: larger ones are rounded, so that two ids are one. */
export const isExact = (value: unknown): value is number =>
  typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER
