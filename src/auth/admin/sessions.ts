import { findSessionOwner } from '#identity/sessions.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Caller } from '../door/access.ts'
import { endSession, endSessions, type ListedSession, namedSession, sessionsOf } from '../session/session.ts'
import { actOnUser } from './act-on-user.ts'
import { TO } from './permissions.ts'

/** By handles, which are no credentials. The caller's rights are those of when the whole request has arrived. */
export const listUserSessions = (kernel: Kernel, caller: Caller, userId: string): Promise<ListedSession[]> =>
  actOnUser(kernel, caller, { permission: TO.LIST_SESSIONS, userId }, (kernel, { user }) =>
    sessionsOf(kernel, caller, user.id),
  )

/** Ends one session of any user, named by handle, token or id. Unknown ones are no failure. */
export async function revokeUserSession(kernel: Kernel, caller: Caller, named: string): Promise<void> {
  const by = namedSession(named)
  const userId = by && (await findSessionOwner(kernel.db, by))
  if (by === undefined || userId === undefined) return
  await actOnUser(kernel, caller, { permission: TO.REVOKE_SESSIONS, userId }, (kernel, { user }) =>
    endSession(kernel, user, by),
  )
}

/** Ends every session and every open link of the user. */
export async function revokeUserSessions(kernel: Kernel, caller: Caller, userId: string): Promise<void> {
  await actOnUser(kernel, caller, { permission: TO.REVOKE_SESSIONS, userId }, (kernel, { user }) =>
    endSessions(kernel, user),
  )
}
