import { countsInSession, isLatelyProven, isWithin, namesOfProofs, RECENT } from '#identity/recent-proof.ts'
import { type Session, updateShown } from '#identity/sessions.ts'
import {
  afterShowing,
  hasPassedFactor,
  isFactor,
  isFactorInForce,
  isUnsettled,
  lastProof,
  type Shown,
  type ShownWay,
  wordsOf,
} from '#identity/shown.ts'
import { getStanding, type Standing } from '#identity/standing.ts'
import { untold } from '#identity/tell.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

const ADDING = ['fresh', 'passed factor'] as const
const TAKING = ['factor', 'password'] as const

/** The demands of each verb on the session that asks for it (auth.md 2). The test of the class (test/demands/) has an entry for each. */
export const DEMANDS = {
  linkAccount: ADDING,
  setPassword: ADDING,
  addPasskey: ADDING,
  approveDevice: ADDING,
  addFactor: ['password', ...ADDING],
  confirmFactor: ADDING,
  enrolRestricted: ['proof'],
  unlinkAccount: ['fresh'],
  unlinkPassword: ['fresh', 'password'],
  removePasskey: ['fresh'],
  replaceFactor: TAKING,
  disableFactor: TAKING,
  readSecret: TAKING,
  readBegunSecret: ['password'],
  replaceBackupCodes: TAKING,
  changeUnprovenEmail: ['proof', 'settled proof', 'factor'],
  deleteUser: ['proof'],
  // By the verbs of admins, on the admin's own account.
  assignOwnPassword: ['password', ...ADDING],
  changeOwnEmail: ['settled password', 'factor'],
} as const satisfies Record<string, readonly Demand[]>

export type DemandingVerb = keyof typeof DEMANDS

/** Open to anonymous users, of whom nothing can be demanded: the session is all that they have. Other verbs wait for a way in or an address. */
const OPEN_TO_ANONYMOUS: readonly DemandingVerb[] = [
  'linkAccount',
  'addPasskey',
  'changeUnprovenEmail',
  'deleteUser',
]

/**
 * `fresh`: a proof within `session.fresh_age`. `proof`: one within ten minutes. `settled proof`: not by a new password alone. `password`,
 * `factor`: this one within ten minutes, if the user has it; without a password a proof. `settled password`: this one within ten minutes,
 * neither new nor absent. `passed factor`: the session has shown the factor in force at any time, or came by a trusted device.
 */
type Demand =
  | 'fresh'
  | 'proof'
  | 'settled proof'
  | 'password'
  | 'settled password'
  | 'factor'
  | 'passed factor'

/**
 * Throws SESSION_NOT_FRESH when the session has not shown what the verb demands. Call it in the transaction that acts, with the user's row
 * locked. `inBody`: what the request itself shows, which the session keeps.
 */
export async function expectShown(
  kernel: Kernel,
  session: Pick<Session, 'id'>,
  verb: DemandingVerb,
  inBody: readonly Shown[] = [],
): Promise<void> {
  const accepts = missing(kernel, await recordShown(kernel, session, inBody), verb)
  if (accepts !== undefined) throw fail('SESSION_NOT_FRESH', { details: { accepts } })
}

/** The same for a verb that has another way where the demand is not met. */
export const hasShown = async (
  kernel: Kernel,
  session: Pick<Session, 'id'>,
  verb: DemandingVerb,
  inBody: readonly Shown[] = [],
): Promise<boolean> => missing(kernel, await recordShown(kernel, session, inBody), verb) === undefined

/** Writes what the request has shown into its session, with the user's row locked. Returns the standing after that. */
export async function recordShown(
  kernel: Kernel,
  { id }: Pick<Session, 'id'>,
  given: readonly (Shown | ShownWay)[],
): Promise<Standing> {
  const standing = await getStanding(kernel.db, id)
  if (given.length === 0) return standing
  untold(kernel, 'what a session has shown counts in it alone')
  const { createdAt, passwordAddedAt } = standing
  const now = kernel.now()
  const shown = given.flatMap((each) => {
    const way =
      each === 'password' ? { way: each, addedAt: passwordAddedAt ?? createdAt, settlesAt: null } : each
    return typeof way === 'object' ? wordsOf(way, { begun: createdAt, now }) : [way]
  })
  const columns = afterShowing(standing, shown, now)
  await updateShown(kernel.db, id, columns)
  return { ...standing, ...columns }
}

/** Names of proofs that meet the first unmet demand. Undefined: all are met. Throws for a verb that is closed to anonymous users. */
function missing(kernel: Kernel, standing: Standing, verb: DemandingVerb): readonly string[] | undefined {
  if (standing.isAnonymous && OPEN_TO_ANONYMOUS.includes(verb)) return undefined
  if (standing.isAnonymous) throw fail('USER_IS_ANONYMOUS')
  const demands: readonly Demand[] = DEMANDS[verb]
  const unmet = demands.find((demand) => !JUDGES[demand](kernel, standing))
  return unmet && acceptedBy(kernel, standing, unmet)
}

const MINUTE = 60_000
/** Until then a new password does not stand for the mailbox, nor what a session without a proof has added for a proof. */
const SETTLING = 10_080 * MINUTE

/** Each is judged by the account as it was when the session began and as it is now, whichever asks for more. */
const JUDGES: Readonly<Record<Demand, (kernel: Kernel, standing: Standing) => boolean>> = {
  fresh: (kernel, standing) => isWithin(kernel, proofOf(standing), kernel.config.session.fresh_age),
  proof: isLatelyProven,
  'settled proof': (kernel, standing) =>
    isPasswordSettled(kernel, standing) || hasOtherProof(kernel, standing),
  password: (kernel, standing) =>
    [standing.userHad, standing.has].every((methods) =>
      methods.includes('password')
        ? isWithin(kernel, standing.passwordShownAt, RECENT)
        : isLatelyProven(kernel, standing),
    ),
  'settled password': (kernel, standing) =>
    hasSettledPassword(kernel, standing) && isWithin(kernel, standing.passwordShownAt, RECENT),
  factor: (kernel, standing) =>
    !asksForFactor(standing) ||
    (isWithin(kernel, standing.factorShownAt, RECENT) && !isUnsettled(standing.shown)),
  'passed factor': (_kernel, standing) => !asksForFactor(standing) || hasPassedFactor(standing.shown),
}

/** Until when a way in that the session adds is no proof of its own. Null: the session has shown one lately, or the way is the user's first. */
export async function settlingOf(kernel: Kernel, { id }: Pick<Session, 'id'>): Promise<Date | null> {
  const standing = await getStanding(kernel.db, id)
  return standing.isAnonymous || isLatelyProven(kernel, standing)
    ? null
    : new Date(kernel.now().getTime() + SETTLING)
}

const proofOf = (standing: Standing): Date | null => lastProof(standing, standing.has)

const asksForFactor = ({ userHad, has }: Standing): boolean => [userHad, has].some(isFactorInForce)

/** A stolen session may have set it. */
const isPasswordSettled = ({ now }: Kernel, { passwordSetAt }: Standing): boolean =>
  passwordSetAt === null || now().getTime() - passwordSetAt.getTime() > SETTLING

/** Now and when the session began. */
const hasSettledPassword = (kernel: Kernel, standing: Standing): boolean =>
  [standing.userHad, standing.has].every((methods) => methods.includes('password')) &&
  isPasswordSettled(kernel, standing)

/** Does what a request has shown stand for a click in the mailbox of the user's proven address? */
export const standsForMailbox = (kernel: Kernel, standing: Standing, inBody: readonly Shown[]): boolean =>
  inBody.includes('password') &&
  isPasswordSettled(kernel, standing) &&
  (!asksForFactor(standing) || inBody.some(isFactor))

/** Besides the password, which has the time of the last proof when it was that proof. */
const hasOtherProof = (
  kernel: Kernel,
  { shown, authTime, passwordShownAt, factorShownAt }: Standing,
): boolean =>
  !isUnsettled(shown) &&
  (authTime?.getTime() !== passwordShownAt?.getTime() || isWithin(kernel, factorShownAt, RECENT))

/** Names for `details.accepts`, best first. */
function acceptedBy(kernel: Kernel, standing: Standing, demand: Demand): readonly string[] {
  const methods = standing.has.filter((method) => isAccepted(kernel, standing, demand, method))
  return namesOfProofs(kernel.config, standing, methods)
}

/** Would showing this method of the user meet the demand? */
function isAccepted(kernel: Kernel, standing: Standing, demand: Demand, method: string): boolean {
  const { userHad, stillHas } = standing
  switch (demand) {
    case 'password':
      if (isWithin(kernel, standing.passwordShownAt, RECENT) || !isAskedForPassword(standing))
        return countsInSession(standing, method)
      return method === 'password' && (stillHas.includes(method) || !userHad.includes(method))
    case 'settled proof':
      return method !== 'password' && countsInSession(standing, method)
    case 'settled password':
      return method === 'password' && hasSettledPassword(kernel, standing)
    case 'factor':
    case 'passed factor':
      return (
        (isFactorInForce([method]) || method === 'passkey') &&
        (countsInSession(standing, method) || !isFactorInForce(userHad))
      )
    default:
      return countsInSession(standing, method)
  }
}

const isAskedForPassword = ({ userHad, has }: Standing): boolean =>
  [userHad, has].some((methods) => methods.includes('password'))
