/** The most digits of a number: parsing takes quadratic time. */
const MAX_DIGITS = 10_000
/** The most zeros that are written out; a number with more gets an exponent. */
const MAX_ZEROS = 1_000

const WHOLE = /^[+-]?\d+$/
const FRACTION = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,6}))?$/i

function integerOf(text: string): bigint | undefined {
  const digits = text.trim()
  return digits.length <= MAX_DIGITS && WHOLE.test(digits) ? BigInt(digits) : undefined
}

/** Parses an integer of so many bits. */
export function boundedOf(text: string, bits: number): bigint | undefined {
  const number = integerOf(text)
  return number !== undefined && BigInt.asIntN(bits, number) === number ? number : undefined
}

export function varintOf(text: string): Buffer | undefined {
  const number = integerOf(text)
  return number === undefined ? undefined : bytesOf(number)
}

/** Parses a decimal and keeps its scale: `1.50` stays `1.50`. */
export function decimalOf(text: string): Buffer | undefined {
  const [given, sign = '', before = '', after = '', exponent = '0'] = FRACTION.exec(text.trim()) ?? []
  if (given === undefined || before + after === '' || given.length > MAX_DIGITS) return undefined
  const scale = after.length - Number(exponent)
  if (Math.abs(scale) > MAX_DIGITS) return undefined
  const head = Buffer.alloc(4)
  head.writeInt32BE(scale)
  return Buffer.concat([head, bytesOf(BigInt(`${before}${after}`), sign === '-')])
}

export function realOf(text: string): Buffer | undefined {
  const number = numberOf(text)
  if (number === undefined) return undefined
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleBE(number)
  return bytes
}

export function singleOf(text: string): Buffer | undefined {
  const number = numberOf(text)
  if (number === undefined || (Number.isFinite(number) && !Number.isFinite(Math.fround(number))))
    return undefined
  const bytes = Buffer.alloc(4)
  bytes.writeFloatBE(number)
  return bytes
}

/** `NaN` and the infinities by name. */
function numberOf(text: string): number | undefined {
  const digits = text.trim()
  const named = NAMES.get(digits.toLowerCase())
  if (named !== undefined) return named
  const [given, , before = '', after = ''] = FRACTION.exec(digits) ?? []
  const number = given === undefined || before + after === '' ? Number.NaN : Number(digits)
  return Number.isFinite(number) ? number : undefined
}

const NAMES = new Map([
  ['nan', Number.NaN],
  ['infinity', Number.POSITIVE_INFINITY],
  ['+infinity', Number.POSITIVE_INFINITY],
  ['-infinity', Number.NEGATIVE_INFINITY],
])

export const varintText = (bytes: Buffer): string => String(bigintOf(bytes))

export function decimalText(bytes: Buffer): string {
  const { digits, isNegative, scale } = decimalParts(bytes)
  return `${isNegative ? '-' : ''}${placed(digits, scale)}`
}

type Order = readonly (number | string)[]

/** A key that compares as the number does, independent of scale: sign, position of the first digit, digits. */
export function decimalOrder(bytes: Buffer): Order {
  const { digits, isNegative, scale } = decimalParts(bytes)
  return orderOfDigits(digits, isNegative, scale)
}

export function varintOrder(bytes: Buffer): Order {
  const number = bigintOf(bytes)
  return orderOfDigits(String(number < 0n ? -number : number), number < 0n, 0)
}

function orderOfDigits(digits: string, isNegative: boolean, scale: number): Order {
  if (digits === '0') return [0]
  const short = withoutEndingZeros(digits)
  const place = digits.length - scale
  if (!isNegative) return [1, place, short]
  // Negative numbers compare in reverse: inverted digits, and a terminator after all of them.
  return [-1, -place, `${short.replace(/\d/g, (digit) => String(9 - Number(digit)))}:`]
}

function withoutEndingZeros(digits: string): string {
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return digits.slice(0, end)
}

function decimalParts(bytes: Buffer) {
  const unscaled = bigintOf(bytes.subarray(4))
  const isNegative = unscaled < 0n
  return { digits: String(isNegative ? -unscaled : unscaled), isNegative, scale: bytes.readInt32BE() }
}

function placed(digits: string, scale: number): string {
  if (scale === 0) return digits
  // With zeros in place of a negative scale it would be another key.
  if (scale < 0 || scale > digits.length + MAX_ZEROS) return `${digits}e${-scale}`
  const padded = digits.padStart(scale + 1, '0')
  return `${padded.slice(0, -scale)}.${padded.slice(-scale)}`
}

/** JSON has no literals for NaN and the infinities. */
export const realText = (number: number): string => {
  if (!Number.isFinite(number)) return `"${number}"`
  return Object.is(number, -0) ? '-0' : String(number)
}

/** The fewest digits that identify the float; JavaScript would write all digits of the double. */
export function singleText(number: number): string {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(number.toPrecision(digits))
    if (Math.fround(short) === number) return realText(short)
  }
  return realText(number)
}

/** Two's complement, big-endian, of minimal length: the server's form, because it distinguishes partitions by bytes. */
function bytesOf(number: bigint, isNegative = false): Buffer {
  const signed = isNegative ? -number : number
  const magnitude = signed < 0n ? -signed - 1n : signed
  const length = Math.floor(bitsOf(magnitude) / 8) + 1
  const hex = BigInt.asUintN(length * 8, signed).toString(16)
  return Buffer.from(hex.padStart(length * 2, '0'), 'hex')
}

/** Without leading zeros. */
function bitsOf(magnitude: bigint): number {
  const digits = magnitude.toString(16)
  return 4 * digits.length - Math.clz32(Number.parseInt(digits.charAt(0), 16)) + 28
}

const bigintOf = (bytes: Buffer): bigint =>
  BigInt.asIntN(bytes.length * 8, BigInt(`0x${bytes.toString('hex') || '0'}`))
