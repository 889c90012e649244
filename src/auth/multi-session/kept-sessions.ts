import type { LiveSession, Sessions } from '#identity/live-sessions.ts'
import { Failure } from '#kernel/errors.ts'
import { type Kernel, withOrigin } from '#kernel/kernel.ts'
import type { KeptSession } from '../door/cookies.ts'
import { fail } from '../errors.ts'
import { namedSession, sessionHandle } from '../session/session.ts'
import type { SignOut } from '../session/sign-out.ts'

/** The cookies of a browser: the sessions that it keeps, and that of the session cookie. */
type Browser = {
  readonly kept: readonly KeptSession[]
  /** The token of the session cookie. */
  readonly active: string | undefined
  readonly address: string
}

/** A session that a browser keeps. */
export type DeviceSession = LiveSession & KeptSession & { readonly current: boolean }

/** Those that are alive, newest first. An impersonated session is kept by no browser. */
export async function findDeviceSessions(
  sessions: Sessions,
  { kept, active, address }: Browser,
): Promise<DeviceSession[]> {
  const found = await Promise.all(
    kept.map(async ({ userId, token }) => {
      const live = await sessions.find(token, address)
      const isKept = live?.user.id === userId && live.session.impersonatedBy === null
      return isKept ? [{ ...live, userId, token, current: token === active }] : []
    }),
  )
  return found.flat().toSorted((one, other) => (one.session.id < other.session.id ? 1 : -1))
}

/** As `list-sessions` shows it: only the current one carries its token, the others have a handle that this browser can use. */
export const shownSession = ({ session, user, token, current }: DeviceSession) => ({
  session: { ...session, token: current ? token : sessionHandle(session) },
  user,
})

/** The session that a handle, a token or an id names, of those that the browser keeps. */
export function expectDeviceSession(found: readonly DeviceSession[], named: string): DeviceSession {
  const by = namedSession(named) ?? {}
  const one = found.find(({ session, token }) =>
    'id' in by ? session.id === by.id : 'token' in by && token === by.token,
  )
  if (one === undefined) throw fail('INVALID_SESSION_TOKEN')
  return one
}

/** Ends sessions that a browser keeps; each is proven by its own token. One that has ended in the meantime is ended. */
export async function endDeviceSessions(
  kernel: Kernel,
  signOut: SignOut,
  ended: readonly DeviceSession[],
): Promise<void> {
  await Promise.all(
    ended.map(async (one) => {
      try {
        const origin = { ...kernel.origin, actorId: one.user.id, onBehalfOf: undefined }
        await signOut(withOrigin(kernel, origin), one)
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'UNAUTHORIZED') throw error
      }
    }),
  )
}
