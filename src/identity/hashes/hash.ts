import { timingSafeEqual } from 'node:crypto'

/** A stored password hash that has been understood. */
export type StoredHash = {
  /** One check keeps a processor busy for longer than a few seconds, so whoever signs in could bring the service down. */
  readonly isTooCostly: boolean
  /** Busy work: run it under the kernel's bound. */
  matches(password: string): Promise<boolean>
}

/** Reads a hash of one form; undefined when the text is not of it. */
export type HashForm = (stored: string) => StoredHash | undefined

/** Shortest derived key that counts as a hash, bytes: a shorter one would be met by chance. */
export const SHORTEST_KEY = 16

export const isSame = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)

/** passlib writes `.` for `+`; padding or none. */
export const fromBase64 = (text: string): Buffer => Buffer.from(text.replaceAll('.', '+'), 'base64')
