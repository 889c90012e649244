import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { takesMailedCodes } from './mailbox.ts'
import { isFactorInForce, isProof, isUnsettled, lastProof } from './shown.ts'
import type { Standing } from './standing.ts'

const MINUTE = 60_000
/** Milliseconds for which a proof is a recent one (auth.md 2). */
export const RECENT = 10 * MINUTE

/**
 * The last proof that counts for a demand; null: there is none. A way in that a session without such a proof has added is none, also in the
 * session that begins with it.
 */
export const provenAt = (standing: Standing): Date | null =>
  isUnsettled(standing.shown) ? standing.passwordShownAt : lastProof(standing, standing.has)

/** In both directions: a proof that is further ahead is of a time before the clock of the database was set back. */
export const isWithin = ({ now }: Pick<Kernel, 'now'>, time: Date | null, age: number): boolean =>
  time !== null && Math.abs(now().getTime() - time.getTime()) <= age

/** Has the session shown a proof within ten minutes? */
export const isLatelyProven = (kernel: Pick<Kernel, 'now'>, standing: Standing): boolean =>
  isWithin(kernel, provenAt(standing), RECENT)

/** Names for `details.accepts` of the methods that would show a proof, best first. */
export const acceptedProofs = (config: Config, standing: Standing): readonly string[] =>
  namesOfProofs(
    config,
    standing,
    standing.has.filter((method) => countsInSession(standing, method)),
  )

/** The names of these methods of the user, best first. */
export const namesOfProofs = (
  config: Config,
  standing: Standing,
  methods: readonly string[],
): readonly string[] =>
  methods
    .flatMap((method) => namesOf(config, method))
    .filter((name) => name !== 'otp' || takesMailedCodes(standing))
    .toSorted(byRank)

/** It is a proof of the user of this session, was not added while the session lived, and is settled as far as can be known. */
export const countsInSession = ({ shown, userHad, stillHas }: Standing, method: string): boolean =>
  isProof(method, userHad) &&
  (userHad.length === 0 || stillHas.includes(method)) &&
  !(isUnsettled(shown) && isAddable(method))

/** A session can add such a way of signing in. The user may have a settled one besides, and a new sign-in with that tells. */
const isAddable = (method: string): boolean => method === 'passkey' || method.startsWith('provider:')

const RANKS = ['password', 'totp', 'otp', 'backup_code', 'passkey']
const rankOf = (name: string): number => (RANKS.includes(name) ? RANKS.indexOf(name) : RANKS.length)
const byRank = (one: string, other: string): number => rankOf(one) - rankOf(other) || one.localeCompare(other)

function namesOf({ auth }: Config, method: string): readonly string[] {
  if (isFactorInForce([method])) return [method, 'backup_code']
  const [, provider] = method.split('provider:')
  if (provider === undefined) return [method]
  return provider in auth.social.providers ? [provider] : []
}
