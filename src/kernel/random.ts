import { randomBytes } from 'node:crypto'

/** Bytes from a secure source. */
export type Random = (bytes: number) => Buffer

export const secureRandom: Random = (bytes) => randomBytes(bytes)

/**
 * For ids that need not be secret, such as those of requests: the system takes as long for a few bytes as for thousands, a
 * twelfth of a get-session. Never for tokens, keys or salts.
 */
export function drawInAdvance(random: Random, amount = 4_096): Random {
  let drawn = random(amount)
  return (bytes) => {
    if (drawn.length < bytes) drawn = random(Math.max(amount, bytes))
    const taken = drawn.subarray(0, bytes)
    drawn = drawn.subarray(bytes)
    return taken
  }
}

/** 32 random bytes in base64url, 43 characters: session tokens and one-time tokens. */
export function randomToken(random: Random): string {
  return random(32).toString('base64url')
}

/** A UUID of any version, in either case. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A UUID version 7 (RFC 9562 section 5.7): 48 bits of milliseconds, then 74 random bits. */
export function uuidv7(now: Date, random: Random): string {
  const bytes = random(16)
  return uuidOf(now.getTime(), bytes.readUInt16BE(6) & MOST, bytes)
}

/** Of 12 bits. */
const MOST = 0xfff
/** The millisecond of this process's last UUID in order, and its place in it. */
const last = { time: 0, place: 0 }

/** The same, but 12 of the random bits count within a millisecond (section 6.2, method 1), so that the ids of one process come in its order. */
export function uuidv7InOrder(now: Date, random: Random): string {
  const [time, bytes] = [now.getTime(), random(16)]
  // At its end it stays there, and the random bits decide.
  last.place = time === last.time ? Math.min(last.place + 1, MOST) : bytes.readUInt16BE(6) & MOST
  last.time = time
  return uuidOf(time, last.place, bytes)
}

function uuidOf(time: number, place: number, random: Buffer): string {
  const bytes = Buffer.from(random)
  bytes.writeUIntBE(time, 0, 6)
  bytes.writeUInt16BE(0x7000 | place, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
