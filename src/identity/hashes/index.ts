import { argon2Hash } from './argon2.ts'
import { bcryptHash } from './bcrypt.ts'
import type { HashForm } from './hash.ts'
import { pbkdf2Hash } from './pbkdf2.ts'
import { scryptHash } from './scrypt.ts'

/** Every form in which a password may be stored: ours first, then those that users are brought along with. */
export const HASH_FORMS: readonly HashForm[] = [argon2Hash, scryptHash, bcryptHash, pbkdf2Hash]
