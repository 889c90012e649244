import { act } from '#identity/act.ts'
import { deleteTicketsFor, issueTicket, redeemAnonymousTicket, redeemTicket } from '#identity/tickets.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'
import { expectShown } from '../door/demands.ts'
import { fail } from '../errors.ts'
import { expectMayEnrol, lacksFactorOnceKnown } from '../two-factor/restricted.ts'

/** Milliseconds from the options until the answer of the authenticator. */
export const CHALLENGE_LIFETIME = 300_000

export type Challenge = {
  /** Names the challenge in a later request; a one-time token. */
  readonly challengeId: string
  /** Signed by the authenticator. In base64url. */
  readonly challenge: string
}

/** A challenge for a new passkey of the caller. It replaces the last one, and ends with the caller's session. */
export function issueRegistrationChallenge(
  kernel: Kernel,
  caller: Caller,
): Promise<Challenge & { readonly mustVerify: boolean }> {
  const challenge = randomToken(kernel.random)
  return act(kernel, bySession(caller), async (kernel, { user }) => {
    const { id: userId, email: address } = user
    const isRestricted = await expectMayEnrol(kernel, user, caller)
    await expectShown(kernel, caller.session, 'addPasskey')
    await deleteTicketsFor(kernel.db, userId, ['passkey-registration'])
    const challengeId = await issueTicket(kernel, 'passkey-registration', {
      userId,
      sessionId: caller.session.id,
      address,
      lifetime: CHALLENGE_LIFETIME,
      payload: { challenge },
    })
    const mustVerify = isRestricted || lacksFactorOnceKnown(kernel, user, caller)
    return { challengeId, challenge, mustVerify }
  })
}

/** A challenge for a sign-in, whose user is not known yet. */
export async function issueSignInChallenge(kernel: Kernel): Promise<Challenge> {
  const challenge = randomToken(kernel.random)
  const challengeId = await issueTicket(kernel, 'passkey-sign-in', {
    userId: null,
    sessionId: null,
    address: null,
    lifetime: CHALLENGE_LIFETIME,
    payload: { challenge },
  })
  return { challengeId, challenge }
}

/** The challenge of that id, which is used up. The caller is `user`, who is locked. Throws CHALLENGE_NOT_FOUND. */
export async function redeemRegistrationChallenge(
  kernel: Kernel,
  { session }: Caller,
  user: User,
  challengeId: string,
): Promise<string> {
  const ticket = await redeemTicket(kernel, user, ['passkey-registration'], challengeId)
  if (ticket === undefined || ticket.expired || ticket.sessionId !== session.id)
    throw fail('CHALLENGE_NOT_FOUND')
  return ticket.payload.challenge
}

/** The same for a sign-in. */
export async function redeemSignInChallenge(kernel: Kernel, challengeId: string): Promise<string> {
  const ticket = await redeemAnonymousTicket(kernel, ['passkey-sign-in'], challengeId)
  if (ticket === undefined || ticket.expired) throw fail('CHALLENGE_NOT_FOUND')
  return ticket.payload.challenge
}
