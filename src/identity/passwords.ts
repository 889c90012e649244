import { hash, verify } from '@node-rs/argon2'
import type { Config } from '#kernel/config/config.ts'
import type { AttemptBucket } from '#kernel/http/limits/attempt-limits.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { replacePassword } from './accounts.ts'
import { isTooCostly } from './hashes/hash.ts'
import { parseHash } from './hashes/parse-hash.ts'
import { ownBucket, type Source } from './known-devices.ts'
import { lockProvenUser } from './proof.ts'

/** Characters after NFKC. It bounds the work of hashing. */
export const PASSWORD_MAX = 128

/** Argon2id (RFC 9106) as a PHC string, in the queue that bounds concurrent hashes. */
export function hashPassword({ config, hashQueue, random }: Kernel, password: string): Promise<string> {
  return hashQueue(() => hash(password.normalize('NFKC'), { ...argon2(config), salt: random(SALT_LENGTH) }))
}

/**
 * The same with a salt derived from the address, so that one hash of a typed password can be compared with those of any number of
 * sign-ups with that address. Salts of two addresses, or of two services, differ like random ones.
 */
export function hashForAddress(
  { config, hashQueue, secrets }: Kernel,
  email: string,
  password: string,
): Promise<string> {
  const salt = Buffer.from(secrets.derive('sign-up', email), 'base64url').subarray(0, SALT_LENGTH)
  return hashQueue(() => hash(password.normalize('NFKC'), { ...argon2(config), salt }))
}

type PasswordClaim = {
  /**
   * The key of the bucket: the address of the account, or what was typed if there is no account. It is the address and not the user's
   * id, so that guesses before a sign-up still count after it, whether it added an account or a hidden sign-up.
   */
  readonly account: string
  /** The hash; undefined without an account or a password. */
  readonly stored: string | undefined
  /** Undefined without an account. */
  readonly userId: string | undefined
  readonly source: Source
}

/**
 * Checks a password that a caller has typed, or throws 429. There is no other way to check one, so every verb counts wrong ones. Those
 * of strangers count in one bucket of the account, whether it exists or not, so that a 429 does not show that either.
 */
export const attemptPassword = async (
  kernel: Kernel,
  claimed: PasswordClaim,
  password: string,
): Promise<boolean> =>
  kernel.limits.attempt('sign_in_account', await bucketOf(kernel, claimed), () =>
    verifyPassword(kernel, claimed.stored, password),
  )

/**
 * Live sessions and known devices have buckets of their own, so that the guesses of others do not shut the user out, and a total, so that more
 * sessions are not any number of guesses.
 */
async function bucketOf(
  kernel: Kernel,
  { account, userId = NO_USER, source }: PasswordClaim,
): Promise<AttemptBucket> {
  const bucket = await ownBucket(kernel, userId, source)
  return bucket === undefined ? { key: strangersOf(account) } : { key: bucket, total: account }
}

const strangersOf = (account: string): string => `account:${account}`

/** Forgets the guesses of strangers, after the owner of the mailbox has set another password. */
export const clearGuesses = (kernel: Kernel, account: string): Promise<void> =>
  kernel.limits.clear('sign_in_account', strangersOf(account))

const NO_USER = '00000000-0000-0000-0000-000000000000'

/** `hidden`: the password of a hidden sign-up with this address. */
type HiddenAttempt = 'right' | 'hidden' | 'wrong'

/**
 * The same with `hide_registered_emails`. Unless the password is right for a proven account, it is also looked up among hidden
 * sign-ups. A right password that signs no one in leaves the bucket as it is: else an attacker could sign up with a victim's
 * address and clear the victim's bucket with that password.
 */
export async function attemptHiddenPassword(
  kernel: Kernel,
  claimed: PasswordClaim & { readonly isProven: boolean; readonly isHidden: () => Promise<boolean> },
  password: string,
): Promise<HiddenAttempt> {
  let outcome: HiddenAttempt = 'wrong'
  await kernel.limits.attempt('sign_in_account', await bucketOf(kernel, claimed), async () => {
    const isRight = await verifyPassword(kernel, claimed.stored, password)
    if (isRight) outcome = 'right'
    if (isRight && claimed.isProven) return true
    if ((await claimed.isHidden()) && !isRight) outcome = 'hidden'
    return outcome === 'wrong' ? false : undefined
  })
  return outcome
}

/**
 * Does the password match the stored hash, ours or an imported one? Without a hash, or with one that is too costly to check, a decoy
 * of the same cost is checked, so that the time does not show whether there is an account. Hashes of other systems have a queue
 * of their own.
 */
async function verifyPassword(
  { config, hashQueue, foreignHashQueue }: Kernel,
  stored: string | undefined,
  password: string,
): Promise<boolean> {
  const known = stored === undefined ? undefined : parseHash(stored)
  const normal = password.normalize('NFKC')
  if (stored === undefined || known === undefined || !isCheckable(config, stored)) {
    await hashQueue(() => verify(decoy(config), normal))
    return false
  }
  if (isCurrent(config, stored)) return hashQueue(() => known.matches(normal))
  // Most systems hash the password as typed, better-auth its NFKC form.
  const spellings = new Set([normal, password])
  return foreignHashQueue(async () => {
    for (const spelling of spellings) if (await known.matches(spelling)) return true
    return false
  }, known.cost.time * spellings.size)
}

/** False for an imported hash whose check would take too long for a sign-in: the user needs a reset. */
export const isCheckable = (config: Config, stored: string): boolean => {
  if (isCurrent(config, stored)) return true
  const known = parseHash(stored)
  return known === undefined || !isTooCostly(known.cost)
}

/**
 * After a sign-in: replaces a hash that the current configuration would not produce, unless the password has changed in the meantime. A
 * failure is logged and does not fail the sign-in; the next one tries again.
 */
export async function rehashPassword(
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
      const isStill = (await lockProvenUser(kernel, { userId, password: stored })) !== undefined
      if (isStill) await replacePassword(kernel.db, { userId, to: renewed, now: kernel.now() })
    })
  } catch (error) {
    kernel.log.warn({ event: 'password_not_renewed', error }, 'a password hash could not be renewed')
  }
}

/** The library's enum does not exist at run time. */
const ARGON2ID = 2
/** Bytes. */
const SALT_LENGTH = 16
const KEY_LENGTH = 32

const argon2 = ({ auth }: Config) => ({
  algorithm: ARGON2ID,
  memoryCost: auth.password.memory,
  timeCost: auth.password.iterations,
  parallelism: auth.password.parallelism,
  outputLen: KEY_LENGTH,
})

/** Prefix of every hash of this configuration. */
const prefix = ({ auth: { password } }: Config): string =>
  `$argon2id$v=19$m=${password.memory},t=${password.iterations},p=${password.parallelism}$`

/** A well-formed hash that no password matches, at the cost of this configuration. */
const decoy = (config: Config): string => `${prefix(config)}${'A'.repeat(22)}$${'A'.repeat(43)}`

const isCurrent = (config: Config, stored: string): boolean =>
  stored.startsWith(prefix(config)) && stored.length === decoy(config).length
