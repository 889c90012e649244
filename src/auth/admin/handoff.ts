import { act } from '#identity/act.ts'
import { mayImpersonate } from '#identity/impersonation.ts'
import { findTicket, issueTicket, redeemTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { isBanned, type User, withoutExpiredBan } from '#identity/users.ts'
import { type Kernel, withOrigin } from '#kernel/kernel.ts'
import type { Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { isRestricted } from '../two-factor/restricted.ts'
import { actAsImpersonator, beginImpersonation, type Impersonation, type Place } from './impersonation.ts'

const HANDOFF = ['impersonation-handoff'] as const
const LIFETIME = 60_000

type Handoff = { readonly code: string; readonly expiresAt: Date; readonly user: User }

/** A code with which another page begins the session of the user. The admin's browser keeps the admin's own session as it is. */
export const handOff = (kernel: Kernel, caller: Caller, userId: string): Promise<Handoff> =>
  actAsImpersonator(kernel, caller, userId, async (kernel, { admin, user }) => {
    const now = kernel.now()
    const code = await issueTicket(kernel, 'impersonation-handoff', {
      ...{ userId: admin.id, address: admin.email, sessionId: caller.session.id, lifetime: LIFETIME },
      payload: { token: tokenHash(caller.token).toString('base64url'), userId: user.id },
    })
    return { code, expiresAt: new Date(now.getTime() + LIFETIME), user: withoutExpiredBan(user, now) }
  })

/**
 * Redeems it, if the admin could still begin the impersonation: in the same session, with the same token, and with the permissions of now.
 * Any other outcome is that of an unknown code, since its bearer may be anyone.
 */
export async function redeemHandoff(kernel: Kernel, code: string, place: Place): Promise<Impersonation> {
  const refuse = () => fail('INVALID_HANDOFF_CODE')
  const found = await findTicket(kernel, HANDOFF, code)
  if (found === undefined || found.sessionId === null) throw refuse()
  const { userId: adminId, sessionId, payload } = found
  const session = { id: sessionId, tokenHash: Buffer.from(payload.token, 'base64url') }
  const authority = { userId: adminId, session, others: [payload.userId], refuse }
  return act(kernel, authority, async (kernel, { user: admin, others }) => {
    const ticket = await redeemTicket(kernel, admin, HANDOFF, code)
    const user = others.get(payload.userId)
    if (ticket === undefined || ticket.expired || user === undefined) throw refuse()
    if (isBanned(user, kernel.now()) || !mayImpersonate(kernel, admin, user)) throw refuse()
    if (await isRestricted(kernel, admin, session)) throw refuse()
    // The page may have a session of its own, which has nothing to do with this act.
    const byAdmin = withOrigin(kernel, { ...kernel.origin, actorId: adminId, onBehalfOf: undefined })
    return beginImpersonation(byAdmin, { admin, user }, sessionId, place)
  })
}
