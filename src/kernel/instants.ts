/** ISO 8601 with a date at least; without a time its midnight, without a zone UTC. Undefined when there is no such day or time. */
export function instantFrom(text: string): Date | undefined {
  const [, day = '', time = '00:00:00', zone = 'Z'] = INSTANT.exec(text.trim()) ?? []
  // As PostgreSQL writes it, a zone may be hours only.
  const instant = new Date(`${day}T${time}${zone.length === 3 ? `${zone}:00` : zone.toUpperCase()}`)
  return isDay(day) && !Number.isNaN(instant.getTime()) ? instant : undefined
}

const INSTANT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))?(Z|[+-]\d\d(?::?\d\d)?)?$/i

/** JavaScript takes the 31st of February for the 3rd of March. */
function isDay(day: string): boolean {
  const midnight = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day)
}
