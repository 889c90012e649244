import { act, actOnOpenTicket, Refusal } from '#identity/act.ts'
import type { Source } from '#identity/known-devices.ts'
import { takesMailedCodes } from '#identity/mailbox.ts'
import type { Session } from '#identity/sessions.ts'
import type { Shown } from '#identity/shown.ts'
import { getMailbox, getStanding } from '#identity/standing.ts'
import { countTicketAttempt, redeemTicket, type Ticket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import type { User } from '#identity/users.ts'
import { recordFailure } from '#kernel/audit/record-failure.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bySession, type Caller } from '../door/access.ts'
import { admit, type StartedSession } from '../door/admit.ts'
import { expectShown, recordShown } from '../door/demands.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import {
  CHECKS,
  type CheckName,
  type CodeFailure,
  expectMailedCode,
  isWrong,
  type Subject,
} from './checks.ts'
import { isBackupCode } from './codes.ts'
import { confirmFactor } from './enrolment.ts'
import { clearWrongCodes, countersOf, countWrongCode, expectUnlocked } from './lock.ts'
import { trustDevice } from './pending.ts'
import { expectMayEnrol } from './restricted.ts'
import { type Factor, findBegunFactor, findFactor } from './store.ts'

/** The place in which a second factor is verified: a sign-in that waits for it, by its ticket, or a session. */
export type VerificationPlace = PendingSignIn | { readonly caller: Caller }

/** Its ticket, and the browser's cookie. */
type PendingSignIn = { readonly pending: string } & Pick<Source, 'knownDevice'>

export type TypedCode = {
  readonly code: string
  /** The browser needs no second factor for 30 days. */
  readonly trustDevice?: boolean | undefined
  /** If the code confirms a new factor: every other session ends. */
  readonly revokeOtherSessions?: boolean | undefined
}

/** The session that a right code has started, or the caller's. */
export type VerifiedSession = Omit<StartedSession, 'knownDevice'>

/** Wrong codes of one pending sign-in. */
const MAX_TRIES = 5

/** Wrong codes are counted. */
export function verifySecondFactor(
  kernel: Kernel,
  by: VerificationPlace,
  name: CheckName,
  typed: TypedCode,
  context: SignInContext,
): Promise<VerifiedSession> {
  return 'pending' in by
    ? completeSignIn(kernel, by, name, typed, context)
    : verifyInSession(kernel, by.caller, name, typed)
}

/** A code that is refused. Its count is committed, and the audit trail shows it. */
const refusalOf = ({ id: targetId }: User, reason: CodeFailure): Refusal =>
  new Refusal(fail(reason), (kernel) => recordFailure(kernel, 'second_factor.failed', { targetId, reason }))

const PENDING = ['second-factor'] as const
export const notPending = () => fail('INVALID_TWO_FACTOR_COOKIE')

/** Runs the work on a pending sign-in, with the user's row locked, and with the user's factor. */
export function actOnPending<T>(
  kernel: Kernel,
  { pending: token, knownDevice }: PendingSignIn,
  work: (kernel: Kernel, user: User, pending: Pending) => Promise<T>,
): Promise<T> {
  const link = { purposes: PENDING, token }
  return actOnOpenTicket(kernel, link, notPending, async (kernel, user, ticket) => {
    const factor = await findFactor(kernel.db, user.id, true)
    if (factor === undefined) throw notPending()
    const counters = await countersOf(kernel, user.id, { knownDevice })
    await expectUnlocked(kernel, factor, counters)
    const subject = { sessionId: null, subject: tokenHash(token).toString('base64url'), counters }
    return work(kernel, user, { ticket, factor, subject })
  })
}

type Pending = {
  readonly ticket: Ticket<'second-factor'>
  readonly factor: Factor
  readonly subject: Subject
}

function completeSignIn(
  kernel: Kernel,
  by: PendingSignIn,
  name: CheckName,
  typed: TypedCode,
  context: SignInContext,
): Promise<VerifiedSession> {
  const { pending: token } = by
  return actOnPending(kernel, by, async (kernel, user, { ticket, factor, subject }) => {
    const { attempts, payload } = ticket
    if (name !== 'backup' && !payload.methods.includes(name)) throw notEnabled(name)
    if (attempts >= MAX_TRIES) {
      await redeemTicket(kernel, user, PENDING, token)
      throw refusalOf(user, 'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE')
    }
    const before = payload.shown ?? []
    const word =
      name === 'otp' ? expectMailedCode(factor, await getMailbox(kernel.db, user.id, before)) : SHOWN[name]
    const refused = await checkCode(kernel, user, factor, subject, name, typed.code)
    if (refused !== undefined) {
      if (isWrong(refused)) await countTicketAttempt(kernel.db, token)
      throw refusalOf(user, refused)
    }
    await redeemTicket(kernel, user, PENDING, token)
    const shown = [...before, word]
    const started = await startSession(kernel, user, shown, { ...context, remember: payload.remember })
    return typed.trustDevice === true && started.trustedDevice === undefined
      ? { ...started, trustedDevice: await trustDevice(kernel, user.id) }
      : started
  })
}

async function startSession(
  kernel: Kernel,
  { id: userId }: User,
  shown: readonly Shown[],
  context: SignInContext,
): Promise<StartedSession> {
  const entrance = { way: 'second factor', shown, proof: { userId }, refuse: notPending } as const
  const admission = await admit(kernel, entrance, context)
  if ('pendingToken' in admission) throw new Error('a verified second factor asked for another one')
  return admission
}

const SHOWN = { totp: 'totp', otp: 'otp', backup: 'backup code' } as const satisfies Record<CheckName, Shown>

/** In a session, a right code confirms a new factor, or shows that the user has the one in force. */
function verifyInSession(
  kernel: Kernel,
  caller: Caller,
  name: CheckName,
  typed: TypedCode,
): Promise<VerifiedSession> {
  return act(kernel, bySession(caller), async (kernel, { user }) => {
    const factor = await factorInSession(kernel, user, caller.session, name)
    const isRestricted = !factor.inForce && (await expectMayEnrol(kernel, user, caller))
    const { session } = caller
    const word = await wordInSession(kernel, session, name, factor, isRestricted)
    const subject = await subjectOf(kernel, user, session)
    await expectUnlocked(kernel, factor, subject.counters)
    const refused = await checkCode(kernel, user, factor, subject, name, typed.code)
    if (refused !== undefined) throw refusalOf(user, refused)
    // Before its own code counts as shown.
    if (!factor.inForce) await expectShown(kernel, session, 'confirmFactor')
    await recordShown(kernel, session, [word])
    const held = { token: caller.token, user }
    const { token, user: now } = factor.inForce
      ? held
      : await confirmFactor(kernel, caller, user, factor, typed)
    const trustedDevice = typed.trustDevice === true ? await trustDevice(kernel, user.id) : undefined
    const left = session.expiresAt.getTime() - kernel.now().getTime()
    return { token, session, user: now, maxAge: session.remembered ? left : undefined, trustedDevice }
  })
}

/** Returns what a right code shows. Throws where codes by mail are not taken. */
const wordInSession = async (
  { db }: Kernel,
  { id }: Pick<Session, 'id'>,
  name: CheckName,
  factor: Factor,
  isRequired = false,
): Promise<Shown> =>
  name === 'otp' ? expectMailedCode(factor, await getStanding(db, id), { isRequired }) : SHOWN[name]

export const subjectOf = async (
  kernel: Kernel,
  user: User,
  { id }: Pick<Session, 'id'>,
): Promise<Subject> => ({
  sessionId: id,
  subject: id,
  counters: await countersOf(kernel, user.id, { sessionId: id }),
})

/** A factor that waits for its first code comes first. Backup codes and codes by mail also serve a user of TOTP. */
export async function factorInSession(
  kernel: Kernel,
  { id }: User,
  session: Pick<Session, 'id'>,
  name: CheckName,
): Promise<Factor> {
  const waiting = await findBegunFactor(kernel, id, session)
  if (waiting?.method === name) return waiting
  const factor = await findFactor(kernel.db, id, true)
  if (factor === undefined || (name === 'totp' && factor.method !== 'totp')) throw notEnabled(name)
  return factor
}

const notEnabled = (name: CheckName) =>
  fail(name === 'totp' ? 'TOTP_NOT_ENABLED' : name === 'otp' ? 'OTP_NOT_ENABLED' : 'TWO_FACTOR_NOT_ENABLED')

/**
 * Checks a code of the factor in force in a session, whichever kind of code it is. Returns what it has shown. A wrong one is
 * counted.
 */
export async function showCode(
  kernel: Kernel,
  user: User,
  session: Pick<Session, 'id'>,
  code: string,
): Promise<Shown> {
  const factor = await findFactor(kernel.db, user.id, true)
  if (factor === undefined) throw fail('TWO_FACTOR_NOT_ENABLED')
  const subject = await subjectOf(kernel, user, session)
  await expectUnlocked(kernel, factor, subject.counters)
  const name = isBackupCode(code) ? 'backup' : factor.method
  const word = await wordInSession(kernel, session, name, factor)
  const refused = await checkCode(kernel, user, factor, subject, name, code)
  if (refused === undefined) return word
  // A user of an authenticator app may have asked for a code by mail.
  const standing = await getStanding(kernel.db, session.id)
  const isMailed =
    name === 'totp' &&
    takesMailedCodes(standing) &&
    (await CHECKS.otp(code)(kernel, user, factor, subject)) === undefined
  if (!isMailed) throw refusalOf(user, refused)
  await clearWrongCodes(kernel, factor, subject.counters)
  return expectMailedCode(factor, standing)
}

/** Checks the code, and counts a wrong one. */
async function checkCode(
  kernel: Kernel,
  user: User,
  factor: Factor,
  subject: Subject,
  name: CheckName,
  code: string,
): Promise<CodeFailure | undefined> {
  const failure = await CHECKS[name](code)(kernel, user, factor, subject)
  if (failure === undefined) await clearWrongCodes(kernel, factor, subject.counters)
  else if (isWrong(failure)) await countWrongCode(kernel, factor, subject.counters)
  return failure
}
