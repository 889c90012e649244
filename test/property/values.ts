import { readJson } from '#kernel/http/bodies/body.ts'

/**
 * A second implementation of PostgreSQL's types: order, equality, text and JSON, with arbitrary precision. It shares no code with the
 * gateway, so that the two can be compared.
 */
export type Value = Exclude<unknown, null>
/** digits × 10^-scale. */
export type Decimal = { readonly digits: bigint; readonly scale: number }
export type Numeric = Decimal | 'NaN' | 'Infinity' | '-Infinity'
/** Days or microseconds since 1970-01-01 UTC. */
export type Instant = bigint | 'infinity' | '-infinity'
export type JsonValue = null | boolean | string | Decimal | JsonValue[] | { readonly members: JsonMembers }
export type JsonMembers = ReadonlyMap<string, JsonValue>

export type Kind = {
  readonly name: string
  readonly sql: string
  /** The value as the database stores it. */
  store(value: Value): Value
  /** The text of `value::text`. */
  text(value: Value): string
  /** The value in a response, as read by `tagged`. */
  json(value: Value): unknown
  equal(left: Value, right: Value): boolean
  /** Negative, zero or positive. Undefined if this model does not implement the order. */
  readonly compare?: (left: Value, right: Value) => number
}

type Meaning<V> = {
  sql: string
  store?: (value: V) => V
  text: (value: V) => string
  json?: (value: V) => unknown
  equal?: (left: V, right: V) => boolean
  compare?: (left: V, right: V) => number
}

/** Erases the value type of a kind for the record below. The generators pass only values of the right type. */
function kind<V>(name: string, meaning: Meaning<V>): Kind {
  const { sql, text, compare } = meaning
  const same = (left: V, right: V) => compare?.(left, right) === 0
  const { store = (value) => value, json = (value) => `'${text(value)}`, equal = same } = meaning
  return { name, sql, store, text, json, equal, ...(compare && { compare }) } as Kind
}

const whole = (name: string) =>
  kind<Decimal>(name, { sql: name, text: decimalText, json: (n) => `#${decimalText(n)}`, compare: byNumber })
const characters = (name: string, sql: string) =>
  kind<string>(name, { sql: `${sql} collate "C"`, text: (value) => value, compare: byCodePoint })

export const kinds = {
  smallint: whole('smallint'),
  integer: whole('integer'),
  bigint: whole('bigint'),
  numeric: kind<Numeric>('numeric', {
    sql: 'numeric',
    text: numericText,
    json: numericJson,
    compare: byNumber,
  }),
  fixed: kind<Numeric>('fixed', {
    sql: 'numeric(12,3)',
    store: (value) => (typeof value === 'string' ? value : rounded(value, 3)),
    text: numericText,
    json: numericJson,
    compare: byNumber,
  }),
  double: kind<number>('double', {
    sql: 'double precision',
    text: String,
    json: (value) => (Number.isFinite(value) ? `#${doubleText(value)}` : `'${value}`),
    compare: byDouble,
  }),
  text: characters('text', 'text'),
  varchar: characters('varchar', 'varchar(40)'),
  prose: characters('prose', 'text'),
  boolean: kind<boolean>('boolean', {
    sql: 'boolean',
    text: String,
    json: (value) => value,
    compare: (left, right) => Number(left) - Number(right),
  }),
  date: kind<Instant>('date', { sql: 'date', text: dateText, compare: byInstant }),
  timestamp: kind<Instant>('timestamp', {
    sql: 'timestamp',
    text: (value) => momentText(value, ''),
    json: (value) => `'${isoText(momentText(value, ''))}`,
    compare: byInstant,
  }),
  timestamptz: kind<Instant>('timestamptz', {
    sql: 'timestamptz',
    text: (value) => momentText(value, '+00'),
    json: (value) => `'${isoText(momentText(value, '+00'))}`,
    compare: byInstant,
  }),
  uuid: kind<string>('uuid', { sql: 'uuid', text: (value) => value, compare: byCodePoint }),
  jsonb: kind<JsonValue>('jsonb', { sql: 'jsonb', text: jsonText, json: jsonTagged, equal: jsonEqual }),
  texts: kind<readonly (string | null)[]>('texts', {
    sql: 'text[]',
    text: (items) => arrayText(items.map((item) => (item === null ? null : quotedItem(item)))),
    json: (items) => items.map((item) => (item === null ? null : `'${item}`)),
    equal: (left, right) => left.length === right.length && left.every((item, at) => item === right[at]),
  }),
  ints: kind<readonly (Decimal | null)[]>('ints', {
    sql: 'int[]',
    text: (items) => arrayText(items.map((item) => item && decimalText(item))),
    json: (items) => items.map((item) => (item === null ? null : `#${decimalText(item)}`)),
    compare: byItems,
  }),
} satisfies Record<string, Kind>
export type KindName = keyof typeof kinds

/** Parses JSON with numbers as tagged texts, `#1.50`, and texts as `'1.50`. The parser keeps keys like `__proto__`. */
export function tagged(text: string): unknown {
  return readJson(text, (json) =>
    JSON.parse(json, (_key, value, { source }) => {
      if (typeof value === 'number') return `#${source}`
      return typeof value === 'string' ? `'${value}` : value
    }),
  ).json
}

// Numbers

export const decimal = (digits: bigint, scale = 0): Decimal => ({ digits, scale })

export function decimalText({ digits, scale }: Decimal): string {
  const all = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, '0')
  const text = scale === 0 ? all : `${all.slice(0, -scale)}.${all.slice(-scale)}`
  return digits < 0n ? `-${text}` : text
}

function numericText(value: Numeric): string {
  return typeof value === 'string' ? value : decimalText(value)
}

function numericJson(value: Numeric): string {
  return typeof value === 'string' ? `'${value}` : `#${decimalText(value)}`
}

/** Rounds half away from zero. */
function rounded(value: Decimal, scale: number): Decimal {
  if (value.scale <= scale) return decimal(value.digits * 10n ** BigInt(scale - value.scale), scale)
  const unit = 10n ** BigInt(value.scale - scale)
  const half = value.digits < 0n ? -unit / 2n : unit / 2n
  return decimal((value.digits + half) / unit, scale)
}

const RANKS = { '-Infinity': 0, Infinity: 2, NaN: 3 } as const

function byNumber(left: Numeric, right: Numeric): number {
  if (typeof left === 'string' || typeof right === 'string') {
    const rank = (value: Numeric) => (typeof value === 'string' ? RANKS[value] : 1)
    return rank(left) - rank(right)
  }
  const scale = Math.max(left.scale, right.scale)
  return sign(rounded(left, scale).digits - rounded(right, scale).digits)
}

const sign = (value: bigint): number => (value < 0n ? -1 : value > 0n ? 1 : 0)

/** NaN equals itself and is greater than all others; the two zeros are equal. */
function byDouble(left: number, right: number): number {
  if (Number.isNaN(left) || Number.isNaN(right))
    return Number(Number.isNaN(left)) - Number(Number.isNaN(right))
  return left < right ? -1 : left > right ? 1 : 0
}

/** The canonical text of a double: JavaScript's. */
export const doubleText = (value: number): string => (Object.is(value, -0) ? '-0' : String(value))

// Text

/** Order in the C collation: by UTF-8 bytes, which is by code point. */
export function byCodePoint(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right))
}

// Time

const DAY = 86_400_000_000n

function byInstant(left: Instant, right: Instant): number {
  if (typeof left === 'bigint' && typeof right === 'bigint') return sign(left - right)
  const rank = (value: Instant) => (value === 'infinity' ? 1 : value === '-infinity' ? -1 : 0)
  return rank(left) - rank(right)
}

const floorDiv = (value: bigint, by: bigint): bigint => (value - (((value % by) + by) % by)) / by

export const dayOf = (moment: Instant): Instant =>
  typeof moment === 'bigint' ? floorDiv(moment, DAY) : moment
export const startOf = (day: Instant): Instant => (typeof day === 'bigint' ? day * DAY : day)

/** Year, month and day of the proleptic Gregorian calendar, counted in eras of 400 years that begin in March. */
function civil(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153)
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  }
}

const padded = (value: number | bigint, length: number): string => String(value).padStart(length, '0')

function dateParts(days: bigint): { text: string; era: string } {
  const { year, month, day } = civil(Number(days))
  const shown = year > 0 ? year : 1 - year
  return { text: `${padded(shown, 4)}-${padded(month, 2)}-${padded(day, 2)}`, era: year > 0 ? '' : ' BC' }
}

function dateText(value: Instant): string {
  if (typeof value === 'string') return value
  const { text, era } = dateParts(value)
  return `${text}${era}`
}

function momentText(value: Instant, zone: '' | '+00'): string {
  if (typeof value === 'string') return value
  const days = floorDiv(value, DAY)
  const { text, era } = dateParts(days)
  const rest = value - days * DAY
  const seconds = rest / 1_000_000n
  const clock = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n]
    .map((part) => padded(part, 2))
    .join(':')
  const fraction = padded(rest % 1_000_000n, 6).replace(/0+$/, '')
  return `${text} ${clock}${fraction && `.${fraction}`}${zone}${era}`
}

/** ISO 8601 for years of four digits. */
const isoText = (text: string): string =>
  /^\d{4}-\d\d-\d\d /.test(text) && !text.endsWith('BC') ? text.replace(' ', 'T').replace(/\+00$/, 'Z') : text

// JSON

/** The text of jsonb: keys sorted by length, then by bytes. */
export function jsonText(value: JsonValue): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return jsonString(value)
  if (Array.isArray(value)) return `[${value.map(jsonText).join(', ')}]`
  if ('digits' in value) return decimalText(value)
  const size = (key: string) => Buffer.byteLength(key)
  const entries = [...value.members].sort(([a], [b]) => size(a) - size(b) || byCodePoint(a, b))
  return `{${entries.map(([key, item]) => `${jsonString(key)}: ${jsonText(item)}`).join(', ')}}`
}

const jsonString = (text: string): string => JSON.stringify(text)

function jsonTagged(value: JsonValue): unknown {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'string') return `'${value}`
  if (Array.isArray(value)) return value.map(jsonTagged)
  if ('digits' in value) return `#${decimalText(value)}`
  return Object.fromEntries([...value.members].map(([key, item]) => [key, jsonTagged(item)]))
}

const isMembers = (value: JsonValue): value is { readonly members: JsonMembers } =>
  typeof value === 'object' && value !== null && 'members' in value
const isScalar = (value: JsonValue): boolean => !Array.isArray(value) && !isMembers(value)

export function jsonEqual(left: JsonValue, right: JsonValue): boolean {
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, at) => jsonEqual(item, right[at] ?? null))
  if (isMembers(left) && isMembers(right))
    return left.members.size === right.members.size && hasMembers(left.members, right.members, jsonEqual)
  if (isDecimal(left) && isDecimal(right)) return byNumber(left, right) === 0
  return left === right
}

const isDecimal = (value: JsonValue): value is Decimal =>
  typeof value === 'object' && value !== null && 'digits' in value

const hasMembers = (all: JsonMembers, some: JsonMembers, fits: typeof jsonEqual): boolean =>
  [...some].every(([key, item]) => all.has(key) && fits(all.get(key) ?? null, item))

/** `left @> right`; an array contains a scalar at the top only. */
export const jsonContains = (left: JsonValue, right: JsonValue): boolean =>
  containsInside(left, Array.isArray(left) && isScalar(right) ? [right] : right)

function containsInside(left: JsonValue, right: JsonValue): boolean {
  if (Array.isArray(left) && Array.isArray(right))
    return right.every((wanted) => left.some((item) => containsInside(item, wanted)))
  if (isMembers(left) && isMembers(right)) return hasMembers(left.members, right.members, containsInside)
  return isScalar(left) && isScalar(right) && jsonEqual(left, right)
}

// Arrays

function arrayText(items: readonly (string | null)[]): string {
  return `{${items.map((item) => item ?? 'NULL').join(',')}}`
}

function quotedItem(item: string): string {
  const isPlain = item !== '' && !/[ \t\n\v\f\r"\\{},]/.test(item) && !/^null$/i.test(item)
  return isPlain ? item : `"${item.replace(/["\\]/g, '\\$&')}"`
}

/** Nulls sort last, and a longer array sorts after its prefix. */
function byItems(left: readonly (Decimal | null)[], right: readonly (Decimal | null)[]): number {
  for (const [at, item] of left.entries()) {
    const other = right[at]
    if (other === undefined) return 1
    const order =
      item === null || other === null ? Number(item === null) - Number(other === null) : byNumber(item, other)
    if (order !== 0) return order
  }
  return left.length - right.length
}
