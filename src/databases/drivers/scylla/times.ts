import { types } from 'cassandra-driver'

/** Dates, times and durations between JSON and CQL, in the form of the PostgreSQL driver: ISO 8601, UTC, no trailing zeros. */

/** ISO 8601 writes years of six digits with a sign. */
const DAY = /^([+-]?\d{4,6})-(\d\d)-(\d\d)$/
const CLOCK = /^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?$/
const MOMENT =
  /^([+-]?\d{4,6}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?) ?(Z|[+-]\d\d(?::?\d\d)?)?)?$/i

export function dateOf(text: string): Buffer | undefined {
  const [given, year, month, date] = DAY.exec(text.trim()) ?? []
  if (given === undefined || utc(Number(year), Number(month), Number(date)) === undefined) return undefined
  return new types.LocalDate(Number(year), Number(month), Number(date)).toBuffer()
}

export function timeOf(text: string): Buffer | undefined {
  const parts = clockOf(text.trim())
  return parts && types.LocalTime.fromString(`${parts.text}.${parts.fraction}`).toBuffer()
}

export const dateText = (bytes: Buffer): string => types.LocalDate.fromBuffer(bytes).toString()
export const clockText = (bytes: Buffer): string => types.LocalTime.fromBuffer(bytes).toString()

/**
 * Without a zone it is UTC. CQL stores milliseconds, so finer values do not fit. Years beyond JavaScript's dates are milliseconds since
 * 1970, as written below.
 */
export function instantOf(text: string): Buffer | undefined {
  const milliseconds = /^-?\d{16,19}$/.test(text) ? BigInt(text) : millisecondsOf(text)
  if (milliseconds === undefined || BigInt.asIntN(64, milliseconds) !== milliseconds) return undefined
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(milliseconds)
  return bytes
}

function millisecondsOf(text: string): bigint | undefined {
  const [given, date = '', time = '00:00', zone = 'Z'] = MOMENT.exec(text.trim()) ?? []
  const [, year, month, dayOfMonth] = DAY.exec(date) ?? []
  const midnight = utc(Number(year), Number(month), Number(dayOfMonth))
  const parts = clockOf(time)
  const offset = offsetOf(zone)
  if (given === undefined || midnight === undefined || !parts || offset === undefined) return undefined
  if (/[1-9]/.test(parts.fraction.slice(3))) return undefined
  const milliseconds = midnight + parts.milliseconds - offset
  return Math.abs(milliseconds) <= FURTHEST ? BigInt(milliseconds) : undefined
}

function clockOf(text: string) {
  const [given, hours = '', minutes = '', seconds = '00', fraction = ''] = CLOCK.exec(text) ?? []
  if (given === undefined || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59)
    return undefined
  const full = fraction.padEnd(9, '0')
  const milliseconds =
    Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1_000 + Number(full.slice(0, 3))
  return { text: `${hours}:${minutes}:${seconds}`, fraction: full, milliseconds }
}

function offsetOf(zone: string): number | undefined {
  if (zone.toUpperCase() === 'Z') return 0
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(3).replace(':', ''))]
  if (hours > 15 || minutes > 59) return undefined
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}

/** Midnight; undefined for the 30th of February. */
function utc(year: number, month: number, date: number): number | undefined {
  const instant = new Date(0)
  instant.setUTCFullYear(year, month - 1, date)
  const isSame = instant.getUTCMonth() === month - 1 && instant.getUTCDate() === date
  return isSame ? instant.getTime() : undefined
}

/** The range of JavaScript's dates, in milliseconds before and after 1970. */
const FURTHEST = 8_640_000_000_000_000

export function instantText(bytes: Buffer): string {
  const milliseconds = bytes.readBigInt64BE()
  if (milliseconds > FURTHEST || milliseconds < -FURTHEST) return String(milliseconds)
  return new Date(Number(milliseconds)).toISOString().replace(/\.?0{1,3}Z$/, 'Z')
}

const SPAN =
  /^P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d{1,9}))?S)?)?$/

/** Months, days and nanoseconds, all with the same sign, as CQL requires. */
export function durationOf(text: string): Buffer | undefined {
  const [given, years, months, weeks, days, hours, minutes, sign = '', seconds, fraction = ''] =
    SPAN.exec(text.trim()) ?? []
  if (given === undefined || /[PT]$/.test(given) || given.length > 100) return undefined
  const number = (digits = '0') => BigInt(digits)
  const late = BigInt(`${sign}${seconds ?? 0}${fraction.padEnd(9, '0')}`)
  const parts = [
    number(years) * 12n + number(months),
    number(weeks) * 7n + number(days),
    (number(hours) * 3_600n + number(minutes) * 60n) * 1_000_000_000n + late,
  ] as const
  const fits = parts.every((part, index) => BigInt.asIntN(index < 2 ? 32 : 64, part) === part)
  if (!fits || (parts.some((part) => part < 0n) && parts.some((part) => part > 0n))) return undefined
  const nanoseconds = types.Long.fromString(String(parts[2]))
  return new types.Duration(Number(parts[0]), Number(parts[1]), nanoseconds).toBuffer()
}

/** Public in the library but missing in its types. */
type Parts = { readonly months: number; readonly days: number; readonly nanoseconds: types.Long }

export function durationText(bytes: Buffer): string {
  const { months, days, nanoseconds } = types.Duration.fromBuffer(bytes) as unknown as Parts
  const nanos = BigInt(nanoseconds.toString())
  const date = [`${Math.trunc(months / 12)}Y`, `${months % 12}M`, `${days}D`]
  const [hours, rest] = [nanos / 3_600_000_000_000n, nanos % 3_600_000_000_000n]
  const time = [`${hours}H`, `${rest / 60_000_000_000n}M`, `${secondsText(rest % 60_000_000_000n)}S`]
  const said = (parts: readonly string[]) =>
    parts.filter((part) => !/^-?0\D/.test(part) || part.includes('.')).join('')
  if (said(time) === '') return said(date) === '' ? 'PT0S' : `P${said(date)}`
  return `P${said(date)}T${said(time)}`
}

function secondsText(nanos: bigint): string {
  const magnitude = nanos < 0n ? -nanos : nanos
  const fraction = String(magnitude % 1_000_000_000n)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${nanos < 0n ? '-' : ''}${magnitude / 1_000_000_000n}${fraction === '' ? '' : `.${fraction}`}`
}
