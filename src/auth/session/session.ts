import { deleteSessionOf, deleteUserSessions, listSessions, type Session } from '#identity/sessions.ts'
import { deleteTickets } from '#identity/tickets.ts'
import { isTokenShaped } from '#identity/tokens.ts'
import type { User } from '#identity/users.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { actAsCaller, type Caller } from '../access.ts'

/** A listed session is named by a handle, which can end it and is not a credential. Only the caller's own carries its token. */
export type ListedSession = Session & { readonly token: string; readonly current: boolean }

const HANDLE = 'sh_'

export async function sessionsOf(kernel: Kernel, { user, session, token }: Caller): Promise<ListedSession[]> {
  const sessions = await listSessions(kernel, user.id)
  return sessions.map((each) => {
    const current = each.id === session.id
    return { ...each, token: current ? token : `${HANDLE}${each.id}`, current }
  })
}

/** Ends one of the caller's sessions, named by handle, token or id, and the links that it asked for. Does nothing to other sessions. */
export async function revokeSession(kernel: Kernel, caller: Caller, named: string): Promise<number> {
  const id = named.startsWith(HANDLE) ? named.slice(HANDLE.length) : named
  if (!UUID.test(id) && !isTokenShaped(named)) return 0
  const by = UUID.test(id) ? { id } : { token: named }
  const count = await actAsCaller(kernel, caller, async (kernel, user) => {
    const count = await deleteSessionOf(kernel.db, user.id, by)
    await recordRevoked(kernel, user, count)
    return count
  })
  await kernel.coherence.settle()
  return count
}

/** Ends all of the caller's sessions and every open link. */
export async function revokeSessions(kernel: Kernel, caller: Caller): Promise<number> {
  const count = await actAsCaller(kernel, caller, async (kernel, user) => {
    await deleteTickets(kernel.db, user)
    const count = await deleteUserSessions(kernel.db, user.id)
    await recordRevoked(kernel, user, count)
    return count
  })
  await kernel.coherence.settle()
  return count
}

export async function revokeOtherSessions(kernel: Kernel, caller: Caller): Promise<number> {
  const { id } = caller.session
  const count = await actAsCaller(kernel, caller, async (kernel, user) => {
    const count = await deleteUserSessions(kernel.db, user.id, id)
    await recordRevoked(kernel, user, count)
    return count
  })
  await kernel.coherence.settle()
  return count
}

const recordRevoked = async (kernel: Kernel, user: User, count: number): Promise<void> => {
  if (count > 0) await recordAct(kernel, 'session.revoked', { targetId: user.id, count })
}
