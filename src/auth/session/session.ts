import { act } from '#identity/act.ts'
import { deleteFactor } from '#identity/second-factor.ts'
import {
  deleteSessionOf,
  deleteUserSessions,
  listSessions,
  type NamedSession,
  type Session,
} from '#identity/sessions.ts'
import { tell, untold } from '#identity/tell.ts'
import { deleteTickets } from '#identity/tickets.ts'
import { isTokenShaped } from '#identity/tokens.ts'
import { deleteTrustedDevices } from '#identity/trusted-devices.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'

/** A listed session is named by a handle, which can end it and is not a credential. Only the caller's own carries its token. */
export type ListedSession = Session & { readonly token: string; readonly current: boolean }

const HANDLE = 'sh_'
export const sessionHandle = ({ id }: Pick<Session, 'id'>): string => `${HANDLE}${id}`

/** The sessions of the caller, or of another user for an admin. */
export async function sessionsOf(
  kernel: Kernel,
  { user, session, token }: Caller,
  userId = user.id,
): Promise<ListedSession[]> {
  const sessions = await listSessions(kernel, userId)
  return sessions.map((each) => {
    const current = each.id === session.id
    return { ...each, token: current ? token : sessionHandle(each), current }
  })
}

/** The session that a handle, a token or an id names; undefined for any other text. */
export function namedSession(named: string): NamedSession | undefined {
  const id = named.startsWith(HANDLE) ? named.slice(HANDLE.length) : named
  if (UUID.test(id)) return { id }
  return isTokenShaped(named) ? { token: named } : undefined
}

/** Ends one of the caller's sessions, named by handle, token or id, and the links that it asked for. Does nothing to other sessions. */
export async function revokeSession(kernel: Kernel, caller: Caller, named: string): Promise<number> {
  const by = namedSession(named)
  if (by === undefined) return 0
  return act(kernel, bySession(caller), (kernel, { user }) => endSession(kernel, user, by))
}

/** Ends all of the caller's sessions, every open link, every trusted device and a begun factor. */
export async function revokeSessions(kernel: Kernel, caller: Caller): Promise<number> {
  return act(kernel, bySession(caller), (kernel, { user }) => endSessions(kernel, user))
}

export async function revokeOtherSessions(kernel: Kernel, caller: Caller): Promise<number> {
  const { id } = caller.session
  return act(kernel, bySession(caller), async (kernel, { user }) => {
    const count = await deleteUserSessions(kernel.db, user.id, id)
    await recordRevoked(kernel, user, count)
    return count
  })
}

/** For a user whose row is locked. */
export async function endSession(kernel: Kernel, user: User, by: NamedSession): Promise<number> {
  const count = await deleteSessionOf(kernel.db, user.id, by)
  await recordRevoked(kernel, user, count)
  return count
}

/** For a user whose row is locked: ends every session, every open link, every trusted device and a begun factor. */
export async function endSessions(kernel: Kernel, user: User): Promise<number> {
  await deleteTickets(kernel.db, user)
  await deleteTrustedDevices(kernel.db, user.id)
  await deleteFactor(kernel.db, user.id, false)
  const count = await deleteUserSessions(kernel.db, user.id)
  await recordRevoked(kernel, user, count)
  return count
}

const recordRevoked = async (kernel: Kernel, user: User, count: number): Promise<void> => {
  await (count > 0
    ? tell(kernel, 'session.revoked', { targetId: user.id, count })
    : untold(kernel, 'no session has ended'))
}
