import { act } from '#identity/act.ts'
import { mayImpersonate } from '#identity/impersonation.ts'
import type { LiveSession, Sessions } from '#identity/live-sessions.ts'
import { hasPermissions } from '#identity/permissions.ts'
import { deleteSession, endWithinMaxAge, insertImpersonation, type Session } from '#identity/sessions.ts'
import { tell } from '#identity/tell.ts'
import { tokenHash } from '#identity/tokens.ts'
import { isBanned, type User, withoutExpiredBan } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { type Act, actOnUser } from './act-on-user.ts'
import { TO } from './permissions.ts'

const HOUR = 3_600_000

export type Impersonation = { readonly token: string; readonly session: Session; readonly user: User }
/** From where the session is used, as the session records it. */
export type Place = { readonly ipAddress: string; readonly userAgent: string | undefined }

/** Begins a session of the user that lasts for an hour, and at most as long as the caller's own. */
export const impersonate = (
  kernel: Kernel,
  caller: Caller,
  userId: string,
  place: Place,
): Promise<Impersonation> =>
  actAsImpersonator(kernel, caller, userId, (kernel, act) =>
    beginImpersonation(kernel, act, caller.session.id, place),
  )

/** Runs the work in a transaction in which the caller may act as the user. */
export async function actAsImpersonator<T>(
  kernel: Kernel,
  caller: Caller,
  userId: string,
  work: (kernel: Kernel, act: Act) => Promise<T>,
): Promise<T> {
  // A stolen session of an admin must not open the data of every user.
  await kernel.limits.consume('impersonation', caller.user.id)
  return actOnUser(kernel, caller, { permission: TO.IMPERSONATE, userId }, (kernel, act) => {
    expectImpersonable(kernel, act)
    return work(kernel, act)
  })
}

function expectImpersonable(kernel: Kernel, { admin, user }: Act): void {
  if (isBanned(user, kernel.now())) throw fail('BANNED_USER')
  if (mayImpersonate(kernel, admin, user)) return
  throw fail(
    hasPermissions(kernel, user)
      ? 'YOU_CANNOT_IMPERSONATE_ADMINS'
      : 'YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS',
  )
}

/** Begins the session, which hangs on that of the admin. The admin's oldest ones end beyond `max_per_user`. */
export async function beginImpersonation(
  kernel: Kernel,
  { admin, user }: Act,
  parentSessionId: string,
  { ipAddress, userAgent }: Place,
): Promise<Impersonation> {
  const token = randomToken(kernel.random)
  const createdAt = kernel.now()
  const session = await insertImpersonation(
    kernel.db,
    {
      id: uuidv7(createdAt, kernel.random),
      tokenHash: tokenHash(token),
      userId: user.id,
      createdAt,
      remembered: false,
      expiresAt: endWithinMaxAge(kernel.config, createdAt, new Date(createdAt.getTime() + HOUR)),
      impersonatedBy: admin.id,
      parentSessionId,
      ipAddress,
      userAgent: userAgent?.slice(0, 512) ?? null,
    },
    kernel.config.session.max_per_user,
  )
  await tell(kernel, 'user.impersonated', { targetId: user.id, details: { sessionId: session.id } })
  return { token, session, user: withoutExpiredBan(user, createdAt) }
}

/** Ends the impersonated session. It begins none: the session of the admin has been alive all the time. */
export async function stopImpersonating(kernel: Kernel, caller: Caller): Promise<void> {
  await act(kernel, bySession(caller), async (kernel, { user }) => {
    await deleteSession(kernel.db, caller.session.id)
    const details = { sessionId: caller.session.id }
    await tell(kernel, 'user.impersonation_ended', { targetId: user.id, details })
  })
}

/** The admin's session, if the token is of that one and no other. */
export async function findParent(
  sessions: Sessions,
  { session }: Caller,
  token: string | undefined,
  address: string,
): Promise<(LiveSession & { readonly token: string }) | undefined> {
  const found = token === undefined ? undefined : await sessions.find(token, address)
  if (token === undefined || found?.session.id !== session.parentSessionId) return undefined
  return { ...found, token }
}
