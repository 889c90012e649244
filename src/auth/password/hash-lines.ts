import { BreachListError } from './breach-list.ts'

/** Hexadecimal digits of a SHA-1, and of the part of it that a list keeps. */
const DIGITS = 40
const KEPT = 12

const [LINE_FEED, CARRIAGE_RETURN, COLON, ZERO] = [0x0a, 0x0d, 0x3a, 0x30]
const NO_DIGIT = 255

const HEX = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = Number.parseInt(String.fromCharCode(byte), 16)
  return Number.isNaN(value) ? NO_DIGIT : value
})

type HashReader = {
  read(chunk: Buffer): void
  /** The last line may have no line feed. */
  end(): void
}

/**
 * Reads lines of the form `SHA1:COUNT`, or `SHA1`, byte by byte: a list of a billion lines has 40 GB. Calls `onHash` with the first 48 bits
 * of each hash. A count of 0 is padding, and passed over.
 */
export function createHashReader(onHash: (hash: number) => void): HashReader {
  let line = 1
  let digits = 0
  let hash = 0
  let countDigits = 0
  let hasColon = false
  let isCounted = false
  const refuse = (): never => {
    throw new BreachListError(`line ${line} is not SHA1:COUNT, or a SHA-1 of ${DIGITS} hexadecimal digits`)
  }
  const endLine = () => {
    if (digits === DIGITS && hasColon === countDigits > 0) {
      if (!hasColon || isCounted) onHash(hash)
    } else if (digits > 0) refuse()
    line++
    digits = 0
    hash = 0
    countDigits = 0
    hasColon = false
    isCounted = false
  }
  const readByte = (byte: number) => {
    const value = HEX[byte] ?? NO_DIGIT
    if (byte === LINE_FEED) endLine()
    else if (byte === CARRIAGE_RETURN) return
    else if (digits < DIGITS) {
      if (value === NO_DIGIT) refuse()
      if (digits++ < KEPT) hash = hash * 16 + value
    } else if (hasColon && value < 10) {
      countDigits++
      isCounted ||= byte !== ZERO
    } else if (byte === COLON && !hasColon) hasColon = true
    else refuse()
  }
  return {
    read(chunk) {
      for (const byte of chunk) readByte(byte)
    },
    end: endLine,
  }
}
