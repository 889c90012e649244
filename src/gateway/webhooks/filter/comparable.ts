import type { Column } from '#databases/plan/catalogue.ts'
import { parseDecimal } from '#databases/request/decimal.ts'

/**
 * Compares two values, given as the text of the database or of a condition, as PostgreSQL compares them; undefined when it would refuse
 * one of them. Without `order`, values are only equal or not.
 */
export type Comparable = {
  readonly compare: (left: string, right: string) => number | undefined
  readonly hasOrder: boolean
}

/** The comparison of a column's type. Undefined for JSON and records, which are not compared. */
export function comparableOf({ base, category }: Pick<Column, 'base' | 'category'>): Comparable | undefined {
  if (base === 'json' || base === 'jsonb' || category === 'C') return undefined
  return Object.hasOwn(BY_TYPE, base) ? BY_TYPE[base] : TEXT_EQUALITY
}

/** For a column whose type is not known: by the JSON of its value. */
export function comparableOfJson(json: string): Comparable | undefined {
  const first = json.charAt(0)
  if (first === '"') return TEXT
  if (first === 't' || first === 'f') return BOOLEAN
  return first === '{' || first === '[' ? undefined : NUMERIC
}

function ordered<T>(
  read: (text: string) => T | undefined,
  compare: (left: T, right: T) => number,
): Comparable {
  return {
    hasOrder: true,
    compare(left, right) {
      const [one, other] = [read(left), read(right)]
      return one === undefined || other === undefined ? undefined : compare(one, other)
    },
  }
}

const sign = (left: bigint | number | string, right: bigint | number | string): number =>
  left < right ? -1 : left > right ? 1 : 0

/** A number with every digit. `rank` orders what is no number: -infinity, numbers, infinity, NaN. */
type Exact = { readonly rank: number; readonly digits: bigint; readonly scale: number }

const RANKS: Readonly<Record<string, number>> = {
  '-infinity': -1,
  '-inf': -1,
  infinity: 1,
  '+infinity': 1,
  inf: 1,
  '+inf': 1,
  nan: 2,
}

/** PostgreSQL also reads `+1`, `.5`, `5.` and spaces around a number. */
const plainNumber = (text: string): string =>
  text
    .trim()
    .replace(/^\+/, '')
    .replace(/^(-?)\./, '$10.')
    .replace(/\.(?=$|[eE])/, '')

function readExact(text: string): Exact | undefined {
  const rank = RANKS[text.trim().toLowerCase()]
  if (rank !== undefined) return { rank, digits: 0n, scale: 0 }
  const decimal = parseDecimal(plainNumber(text))
  return decimal && { rank: 0, ...decimal }
}

function compareExact(left: Exact, right: Exact): number {
  if (left.rank !== right.rank) return sign(left.rank, right.rank)
  const scale = Math.max(left.scale, right.scale)
  const at = ({ digits, scale: from }: Exact) => digits * 10n ** BigInt(scale - from)
  return sign(at(left), at(right))
}

function readDouble(text: string): number | undefined {
  const rank = RANKS[text.trim().toLowerCase()]
  if (rank !== undefined) return rank === 2 ? Number.NaN : rank * Number.POSITIVE_INFINITY
  const plain = plainNumber(text)
  // Number also reads nothing, and 0x1f.
  const value = /^[-+.\deE]+$/.test(plain) ? Number(plain) : Number.NaN
  return Number.isNaN(value) ? undefined : value
}

function readReal(text: string): number | undefined {
  const double = readDouble(text)
  return double === undefined ? undefined : Math.fround(double)
}

/** NaN is equal to itself, and above all others. */
const compareDoubles = (left: number, right: number): number =>
  Number.isNaN(left) || Number.isNaN(right)
    ? sign(Number(Number.isNaN(left)), Number(Number.isNaN(right)))
    : sign(left, right)

/** Any beginning of these words that means only one of them. */
function readBoolean(text: string): number | undefined {
  const word = text.trim().toLowerCase()
  const starts = (whole: string, minLength: number) => word.length >= minLength && whole.startsWith(word)
  if (starts('true', 1) || starts('yes', 1) || word === 'on' || word === '1') return 1
  if (starts('false', 1) || starts('no', 1) || starts('off', 2) || word === '0') return 0
  return undefined
}

function readUuid(text: string): string | undefined {
  const digits = text.trim().replace(/^\{(.*)\}$/, '$1')
  return /^([0-9a-f]{4}-?){7}[0-9a-f]{4}$/i.test(digits)
    ? digits.replaceAll('-', '').toLowerCase()
    : undefined
}

const CLOCK = String.raw`(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?`
const CALENDAR = String.raw`(\d{4,6})-(\d{1,2})-(\d{1,2})`
const ZONE = String.raw`(?:Z|([+-])(\d{2})(?::?(\d{2}))?)`
const INSTANT = new RegExp(`^${CALENDAR}(?:[T ]${CLOCK})?\\s*${ZONE}?( BC)?$`, 'i')
const TIME = new RegExp(`^${CLOCK}$`)

type ReadZone = 'ignores the zone' | 'minds the zone' | 'day only'

/** Microseconds since 1970; infinities are beyond all others. Words like `now` and other spellings are undefined. */
const readInstant =
  (how: ReadZone) =>
  (text: string): bigint | undefined => {
    const word = text.trim().toLowerCase()
    if (word === 'infinity' || word === '-infinity') return (word === 'infinity' ? 1n : -1n) * FAR
    const [
      ,
      year,
      month,
      day,
      hour = '0',
      minute = '0',
      second = '0',
      fraction = '',
      sign,
      hours,
      minutes,
      bc,
    ] = INSTANT.exec(text.trim()) ?? []
    if (year === undefined || month === undefined || day === undefined) return undefined
    const days = daysOf(bc === undefined ? Number(year) : 1 - Number(year), Number(month), Number(day))
    const time = microsecondsOf(hour, minute, second, fraction)
    if (days === undefined || time === undefined) return undefined
    if (how === 'day only') return BigInt(days)
    const shift = how === 'minds the zone' ? zoneOf(sign, hours, minutes) : 0n
    return BigInt(days) * DAY + time - shift
  }

const DAY = 86_400_000_000n
const FAR = 10n ** 30n

const zoneOf = (sign: string | undefined, hours = '0', minutes = '0'): bigint =>
  BigInt(sign === '-' ? -1 : 1) * (BigInt(hours) * 60n + BigInt(minutes)) * 60_000_000n

function microsecondsOf(hour: string, minute: string, second: string, fraction = ''): bigint | undefined {
  if (Number(hour) > 24 || Number(minute) > 59 || Number(second) > 60) return undefined
  const time =
    ((BigInt(hour) * 60n + BigInt(minute)) * 60n + BigInt(second)) * 1_000_000n +
    BigInt(fraction.padEnd(6, '0'))
  return time > DAY ? undefined : time
}

/** Days since 1970-01-01 in the Gregorian calendar; undefined when there is no such day. */
function daysOf(year: number, month: number, day: number): number | undefined {
  // Date reads years below 100 as of this century, so the year is moved by whole cycles of 400 years.
  const cycles = Math.floor((year - 2_000) / 400)
  const date = new Date(Date.UTC(year - 400 * cycles, month - 1, day))
  const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  return exists ? date.getTime() / 86_400_000 + cycles * 146_097 : undefined
}

function readTime(text: string): bigint | undefined {
  const [, hour, minute, second = '0', fraction] = TIME.exec(text.trim()) ?? []
  return hour === undefined || minute === undefined
    ? undefined
    : microsecondsOf(hour, minute, second, fraction)
}

/** By code points, as collation "C" does; UTF-16 would put U+FFFF before U+10000. */
const compareTexts = (left: string, right: string): number =>
  left === right ? 0 : Buffer.compare(Buffer.from(left), Buffer.from(right))

/** Spaces at the end of a `character(n)` mean nothing. */
function withoutPadding(text: string): string {
  let end = text.length
  while (text.charAt(end - 1) === ' ') end--
  return text.slice(0, end)
}

const asText = (text: string): string => text

const NUMERIC = ordered(readExact, compareExact)
const BOOLEAN = ordered(readBoolean, sign)
const TEXT = ordered(asText, compareTexts)

/** Enums, arrays, ranges, addresses …: equal when their texts are, without an order. */
const TEXT_EQUALITY: Comparable = {
  hasOrder: false,
  compare: (left, right) => (left === right ? 0 : 1),
}

const BY_TYPE: Readonly<Record<string, Comparable>> = {
  int2: NUMERIC,
  int4: NUMERIC,
  int8: NUMERIC,
  oid: NUMERIC,
  numeric: NUMERIC,
  float4: ordered(readReal, compareDoubles),
  float8: ordered(readDouble, compareDoubles),
  bool: BOOLEAN,
  text: TEXT,
  varchar: TEXT,
  name: TEXT,
  bpchar: ordered(withoutPadding, compareTexts),
  citext: ordered((text) => text.toLowerCase(), compareTexts),
  uuid: ordered(readUuid, sign),
  date: ordered(readInstant('day only'), sign),
  timestamp: ordered(readInstant('ignores the zone'), sign),
  timestamptz: ordered(readInstant('minds the zone'), sign),
  time: ordered(readTime, sign),
}
