import { timingSafeEqual } from 'node:crypto'

/** A stored password hash that has been understood. */
export type StoredHash = {
  /** What one check takes, as its parameters say: milliseconds of one core, and KiB. */
  readonly cost: Cost
  /** Busy work: run it under a bound of the kernel's. */
  matches(password: string): Promise<boolean>
}

export type Cost = { readonly time: number; readonly memory: number }

/**
 * The most that a sign-in may cost: about a second of one core, and a quarter of a gigabyte. Each form computes its cost by a
 * constant that was measured (docs/decisions/0006-argon2id-with-a-bound.md).
 */
const MOST: Cost = { time: 1_000, memory: 262_144 }

/** A hash that is never checked: anyone who knows the account's name could keep the machine busy with it. */
export const isTooCostly = ({ time, memory }: Cost): boolean => time > MOST.time || memory > MOST.memory

/** Reads a hash of one form; undefined when the text is not of it. */
export type HashForm = (stored: string) => StoredHash | undefined

/** Shortest derived key that counts as a hash, bytes: a shorter one would be met by chance. */
export const SHORTEST_KEY = 16

export const isSame = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)

/** passlib writes `.` for `+`; padding or none. */
export const fromBase64 = (text: string): Buffer => Buffer.from(text.replaceAll('.', '+'), 'base64')
