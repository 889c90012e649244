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

/** The millisecond of this process's last UUID, and its place in it. */
const last = { time: 0, place: 0 }

/**
 * A UUID version 7 (RFC 9562 section 5.7): 48 bits of milliseconds, 12 bits that are random at first and count within a millisecond (section 6.2, method
 * 1), so that the ids of one process come in its order, and 62 random bits.
 */
export function uuidv7(now: Date, random: Random): string {
  const bytes = random(16)
  const time = now.getTime()
  // At its end it stays there, and the random bits decide.
  last.place = time === last.time ? Math.min(last.place + 1, 0xfff) : bytes.readUInt16BE(6) & 0xfff
  last.time = time
  bytes.writeUIntBE(time, 0, 6)
  bytes.writeUInt16BE(0x7000 | last.place, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
