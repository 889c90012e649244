/** Reads ISO 8601. The time defaults to midnight and the zone to UTC. Undefined when there is no such day or time. */
export function instantFrom(text: string): Date | undefined {
  const [, day = '', time = '00:00:00', zone = 'Z'] = INSTANT.exec(text.trim()) ?? []
  // PostgreSQL writes zones of whole hours without minutes.
  const instant = new Date(`${day}T${time}${zone.length === 3 ? `${zone}:00` : zone.toUpperCase()}`)
  return isDay(day) && !Number.isNaN(instant.getTime()) ? instant : undefined
}

const INSTANT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))?(Z|[+-]\d\d(?::?\d\d)?)?$/i

/** `Date` reads the 31st of February as the 3rd of March. */
function isDay(day: string): boolean {
  const midnight = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day)
}
