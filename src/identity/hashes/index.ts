import { argon2Hash } from './argon2.ts'
import { bcryptHash } from './bcrypt.ts'
import type { HashForm } from './hash.ts'
import { pbkdf2Hash } from './pbkdf2.ts'
import { scryptHash } from './scrypt.ts'

/** Every form of stored password: ours first, then those of imported users. */
export const HASH_FORMS: readonly HashForm[] = [argon2Hash, scryptHash, bcryptHash, pbkdf2Hash]
