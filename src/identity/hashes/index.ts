import { argon2Hash } from './argon2.ts'
import { bcryptHash } from './bcrypt.ts'
import type { StoredHash } from './hash.ts'
import { pbkdf2Hash } from './pbkdf2.ts'
import { scryptHash } from './scrypt.ts'

/** Every form in which a password may be stored: ours, and those that users are brought along with. */
const FORMS: readonly ((stored: string) => StoredHash | undefined)[] = [
  argon2Hash,
  scryptHash,
  bcryptHash,
  pbkdf2Hash,
]

/** Undefined: of no form that is known, so no password fits. */
export function readHash(stored: string): StoredHash | undefined {
  for (const read of FORMS) {
    const hash = read(stored)
    if (hash !== undefined) return hash
  }
  return undefined
}
