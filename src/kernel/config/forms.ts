/**
 * The written form of a value: parses a text, writes a value, and describes what is allowed. Every value that
 * `parse` returns is valid; there is no second check.
 */
export type Form<T> = {
  /** One or two words, for the documentation. */
  readonly name: string
  /** Completes "must be …". */
  readonly allowed: string
  readonly parse: (text: string) => T | undefined
  readonly write: (value: T) => string | number | boolean
}

/** Bounds, both included. */
export type Range = { readonly min: number; readonly max: number }

const within = (value: number, { min, max }: Range) => (value >= min && value <= max ? value : undefined)

/** Without control characters: a line break would end a header or a log line. */
const isPlain = (text: string) => text !== '' && !/\p{Cc}/u.test(text)

export function textForm(name = 'text', pattern = /^/, allowed = 'text, not empty'): Form<string> {
  const parse = (text: string) => (isPlain(text) && pattern.test(text) ? text : undefined)
  return { name, allowed, parse, write: (value) => value }
}

const FLAGS = new Map([
  ...['true', '1', 'yes', 'on'].map((word) => [word, true] as const),
  ...['false', '0', 'no', 'off'].map((word) => [word, false] as const),
])

export const flagForm: Form<boolean> = {
  name: 'true or false',
  allowed: 'true or false (also yes, no, on, off, 1, 0)',
  parse: (text) => FLAGS.get(text.trim().toLowerCase()),
  write: (value) => value,
}

export function integerForm(range: Range): Form<number> {
  return {
    name: `whole number, ${range.min} to ${range.max}`,
    allowed: `a whole number from ${range.min} to ${range.max}`,
    parse: (text) => (/^-?\d{1,15}$/.test(text.trim()) ? within(Number(text), range) : undefined),
    write: (value) => value,
  }
}

/** Upper and lower case are accepted alike, and kept as spelled here. */
export function choiceForm<const T extends string>(values: readonly T[]): Form<T> {
  return {
    name: values.join(', '),
    allowed: values.length === 1 ? `${values[0]}` : `one of ${values.join(', ')}`,
    parse: (text) => values.find((value) => value.toLowerCase() === text.trim().toLowerCase()),
    write: (value) => value,
  }
}

const MILLISECONDS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const BYTES = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }

/** In milliseconds. */
export const durationForm = (range: Range) =>
  measureForm('duration', 'a duration like 500ms, 30s, 15m, 12h, 7d', MILLISECONDS, range, '0s')

/** In bytes. */
export const sizeForm = (range: Range) => measureForm('size', 'a size like 512KiB, 1MiB', BYTES, range, '0B')

export const parseDuration = (text: string) => parseMeasure(text, MILLISECONDS)
export const parseSize = (text: string) => parseMeasure(text, BYTES)

type Units = Readonly<Record<string, number>>

function measureForm(name: string, like: string, units: Units, range: Range, zero: string): Form<number> {
  const write = (value: number) => writeMeasure(value, units) ?? zero
  return {
    name: `${name}, ${write(range.min)} to ${write(range.max)}`,
    allowed: `${like}, from ${write(range.min)} to ${write(range.max)}`,
    parse: (text) => {
      const value = parseMeasure(text, units)
      return value === undefined ? undefined : within(value, range)
    },
    write,
  }
}

function parseMeasure(text: string, units: Units): number | undefined {
  // Zero needs no unit.
  if (/^0{1,12}$/.test(text.trim())) return 0
  const [, digits, unit] = /^(\d{1,16})([A-Za-z]+)$/.exec(text.trim()) ?? []
  if (unit === undefined || !Object.hasOwn(units, unit)) return undefined
  return Number(digits) * (units[unit] ?? Number.NaN)
}

/** In the largest unit without a remainder. */
function writeMeasure(value: number, units: Units): string | undefined {
  const [unit, factor] = Object.entries(units).findLast(([, factor]) => value % factor === 0) ?? []
  return value === 0 || factor === undefined ? undefined : `${value / factor}${unit}`
}
