import { timingSafeEqual } from 'node:crypto'

/** A parsed password hash. */
export type StoredHash = {
  /** Cost of one check by its parameters: milliseconds of one core, and KiB. */
  readonly cost: Cost
  /** CPU-bound: run it in one of the kernel's queues. */
  matches(password: string): Promise<boolean>
}

export type Cost = { readonly time: number; readonly memory: number }

/**
 * The upper bound of a sign-in: about a second of one core, and a quarter of a gigabyte. Each form computes its cost from a
 * measured constant (docs/decisions/0006-argon2id-with-a-bound.md).
 */
const MAX_COST: Cost = { time: 1_000, memory: 262_144 }

/** Such a hash is never checked: a stranger who knows the account's name could exhaust the processor with it. */
export const isTooCostly = ({ time, memory }: Cost): boolean =>
  time > MAX_COST.time || memory > MAX_COST.memory

/** Parses one form of hash; undefined for any other text. */
export type HashForm = (stored: string) => StoredHash | undefined

/** Bytes of the shortest derived key that is accepted: a shorter one could match by chance. */
export const MIN_KEY = 16

export const isSame = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)

/** With padding or without. passlib writes `.` for `+`. */
export const fromBase64 = (text: string): Buffer => Buffer.from(text.replaceAll('.', '+'), 'base64')
