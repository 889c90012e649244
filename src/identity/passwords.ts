import { hash, verify } from '@node-rs/argon2'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** Characters, after NFKC; the upper bound keeps hashing bounded. */
export const PASSWORD_MAX = 128

/** A PHC string by Argon2id (RFC 9106), under the bound on how many hashes run at once. */
export function hashPassword({ config, heavy, random }: Kernel, password: string): Promise<string> {
  return heavy(() => hash(password.normalize('NFKC'), { ...argon2(config), salt: random(16) }))
}

/**
 * Does the password fit the stored hash? Without one, a decoy of the same cost is checked, so that the answer's time
 * does not tell whether there is an account.
 */
export async function verifyPassword(
  kernel: Kernel,
  stored: string | undefined,
  password: string,
): Promise<boolean> {
  const matches = await kernel.heavy(() => verify(stored ?? decoy(kernel.config), password.normalize('NFKC')))
  return matches && stored !== undefined
}

/** The library's enum has no value at run time. */
const ARGON2ID = 2

const argon2 = ({ auth }: Config) => ({
  algorithm: ARGON2ID,
  memoryCost: auth.password.memory,
  timeCost: auth.password.iterations,
  parallelism: auth.password.parallelism,
  outputLen: 32,
})

/** A well-formed hash that no password has; costs what a real one of this configuration costs. */
function decoy({ auth: { password } }: Config): string {
  const { memory, iterations, parallelism } = password
  return `$argon2id$v=19$m=${memory},t=${iterations},p=${parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`
}
