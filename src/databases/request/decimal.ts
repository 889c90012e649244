/**
 * An exact decimal for sums: `digits` × 10^-`scale`, in BigInt. Only addition is needed, in eight lines; a decimal library has rounding
 * rules and precision limits that would have to be switched off to keep every digit.
 */
export type Decimal = { readonly digits: bigint; readonly scale: number }

export const ZERO: Decimal = { digits: 0n, scale: 0 }

/**
 * The largest number of digits that is parsed: a declared numeric has at most 1,000 digits, a double at most 309 before the point or 340
 * after it. Without a bound, a short text like 1e131071 would block the process.
 */
export const MAX_DIGITS = 1_400

/**
 * Parses the form that databases and JSON write: `-12.50`, `1e-7`. The scale is kept: 1.10 is not 1.1. Undefined when the text is no number
 * or too long.
 */
export function parseDecimal(text: string): Decimal | undefined {
  if (text.length > MAX_DIGITS) return undefined
  const [, sign = '', whole, fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,5}))?$/.exec(text) ?? []
  if (whole === undefined) return undefined
  const scale = fraction.length - Number(exponent)
  const length = whole.length + fraction.length
  if ((scale < 0 ? length - scale : Math.max(length, scale)) > MAX_DIGITS) return undefined
  const digits = BigInt(sign + whole + fraction)
  return scale < 0 ? { digits: digits * 10n ** BigInt(-scale), scale: 0 } : { digits, scale }
}

/** Writes `1.0` and `1e3` as whole numbers, because an integer column does not accept these spellings. */
export function wholeText(text: string): string {
  const { digits, scale } = parseDecimal(text) ?? {}
  if (digits === undefined || scale === undefined) return text
  const unit = 10n ** BigInt(scale)
  return digits % unit === 0n ? String(digits / unit) : text
}

export function sum(left: Decimal, right: Decimal): Decimal {
  const scale = Math.max(left.scale, right.scale)
  return { digits: at(scale, left) + at(scale, right), scale }
}

const at = (scale: number, value: Decimal): bigint =>
  scale === value.scale ? value.digits : value.digits * 10n ** BigInt(scale - value.scale)

/** The decimal as a JSON number. */
export function decimalText({ digits, scale }: Decimal): string {
  const sign = digits < 0n ? '-' : ''
  const text = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0')
  if (scale === 0) return sign + text
  return `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`
}
