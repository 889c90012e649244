import { hash, verify } from '@node-rs/argon2'
import type { Config } from '#kernel/config/config.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { replacePassword } from './accounts.ts'
import { isTooCostly } from './hashes/hash.ts'
import { readHash } from './hashes/read-hash.ts'
import { stateAgain } from './proof.ts'

/** Characters, after NFKC; the upper bound keeps hashing bounded. */
export const PASSWORD_MAX = 128

/** A PHC string by Argon2id (RFC 9106), under the bound on how many hashes run at once. */
export function hashPassword({ config, heavy, random }: Kernel, password: string): Promise<string> {
  return heavy(() => hash(password.normalize('NFKC'), { ...argon2(config), salt: random(SALT) }))
}

/**
 * The same with a salt that follows from the address, so that one hash of a typed password can be compared with those of any
 * number of sign-ups with that address. Of two addresses, and of two services, the salts differ like random ones.
 */
export function hashForAddress(
  { config, heavy, secrets }: Kernel,
  email: string,
  password: string,
): Promise<string> {
  const salt = Buffer.from(secrets.derive('sign-up', email), 'base64url').subarray(0, SALT)
  return heavy(() => hash(password.normalize('NFKC'), { ...argon2(config), salt }))
}

export type Claimed = {
  /**
   * The bucket: the address of the account, or what was typed where there is none. By the address and not the user's id,
   * so that guesses of before a sign-up count after it too, whether it made an account or a hidden sign-up.
   */
  readonly account: string
  /** The hash, if there is one. */
  readonly stored: string | undefined
}

/**
 * Checks a password that a caller has typed, for whatever it is asked, or throws 429. The only way to do so, hence no verb
 * forgets to count: wrong ones count in one bucket of the account, known or not, so that a 429 tells nothing either.
 */
export const guessPassword = (
  kernel: Kernel,
  { account, stored }: Claimed,
  password: string,
): Promise<boolean> =>
  kernel.limits.guess('sign_in_account', `account:${account}`, () => verifyPassword(kernel, stored, password))

/** `hidden`: the password of a sign-up that looks as if it had made an account. */
export type HiddenGuess = 'right' | 'hidden' | 'wrong'

/**
 * The same where addresses with an account are hidden. Only the right password of a proven account is checked once. All else is
 * looked for among hidden sign-ups, too. What is right but opens nothing leaves the bucket as it is: otherwise a sign-up
 * with the address of a victim would be a way to clear the victim's.
 */
export async function guessHiddenPassword(
  kernel: Kernel,
  claimed: Claimed & { readonly isProven: boolean; readonly isHidden: () => Promise<boolean> },
  password: string,
): Promise<HiddenGuess> {
  let outcome: HiddenGuess = 'wrong'
  await kernel.limits.guess('sign_in_account', `account:${claimed.account}`, async () => {
    const isRight = await verifyPassword(kernel, claimed.stored, password)
    if (isRight) outcome = 'right'
    if (isRight && claimed.isProven) return true
    if ((await claimed.isHidden()) && !isRight) outcome = 'hidden'
    return outcome === 'wrong' ? false : undefined
  })
  return outcome
}

/**
 * Does the password fit the stored hash, ours or one that was brought along? Without one, and for one that is too costly to
 * check, a decoy takes the time of one of ours, so that it does not tell whether there is an account. Hashes of other
 * systems wait for each other only.
 */
async function verifyPassword(
  { config, heavy, foreignHashes }: Kernel,
  stored: string | undefined,
  password: string,
): Promise<boolean> {
  const known = stored === undefined ? undefined : readHash(stored)
  const normal = password.normalize('NFKC')
  if (stored === undefined || known === undefined || !isCheckable(config, stored)) {
    await heavy(() => verify(decoy(config), normal))
    return false
  }
  if (isCurrent(config, stored)) return heavy(() => known.matches(normal))
  // Most systems have hashed what was typed; better-auth its NFKC form.
  const spellings = new Set([normal, password])
  return foreignHashes(async () => {
    for (const spelling of spellings) if (await known.matches(spelling)) return true
    return false
  }, known.cost.time * spellings.size)
}

/** False for a hash of another system whose check would take longer than a sign-in may: only a reset gets its user in. */
export const isCheckable = (config: Config, stored: string): boolean => {
  if (isCurrent(config, stored)) return true
  const known = readHash(stored)
  return known === undefined || !isTooCostly(known.cost)
}

/**
 * After a sign-in: gives a password that is not stored as this configuration would store it a hash of today, unless it
 * was changed meanwhile. Nobody stays outside because this fails; the next sign-in tries again.
 */
export async function renewPassword(
  kernel: Kernel,
  {
    userId,
    stored,
    password,
  }: { readonly userId: string; readonly stored: string; readonly password: string },
): Promise<void> {
  if (isCurrent(kernel.config, stored)) return
  try {
    const renewed = await hashPassword(kernel, password)
    await atomically(kernel, async (kernel) => {
      const isStill = (await stateAgain(kernel, { userId, password: stored })) !== undefined
      if (isStill) await replacePassword(kernel.db, { userId, to: renewed, now: kernel.now() })
    })
  } catch (error) {
    kernel.log.warn({ event: 'password_not_renewed', error }, 'a password hash could not be renewed')
  }
}

/** The library's enum has no value at run time. */
const ARGON2ID = 2
/** Bytes. */
const SALT = 16
const KEY = 32

const argon2 = ({ auth }: Config) => ({
  algorithm: ARGON2ID,
  memoryCost: auth.password.memory,
  timeCost: auth.password.iterations,
  parallelism: auth.password.parallelism,
  outputLen: KEY,
})

/** How every hash of this configuration begins. */
const prefix = ({ auth: { password } }: Config): string =>
  `$argon2id$v=19$m=${password.memory},t=${password.iterations},p=${password.parallelism}$`

/** A well-formed hash that no password has; costs what a real one of this configuration costs. */
const decoy = (config: Config): string => `${prefix(config)}${'A'.repeat(22)}$${'A'.repeat(43)}`

const isCurrent = (config: Config, stored: string): boolean =>
  stored.startsWith(prefix(config)) && stored.length === decoy(config).length
