import { act, actOnTicket } from '#identity/act.ts'
import { countLine } from '#identity/derived-sessions.ts'
import { issueTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bySession, type Caller } from '../door/access.ts'
import type { RenewedSession } from '../door/admit.ts'
import { deriveSession } from '../door/derive-session.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'

const ONE_TIME_TOKEN = ['one-time-token'] as const
/** Sessions of which each is derived from the one before. It bounds the sessions that a user has beyond `session.max_per_user`. */
const LONGEST_LINE = 5

/** A token with which another browser or app of the user begins a session that is derived from the caller's. */
export async function issueOneTimeToken(kernel: Kernel, caller: Caller): Promise<string> {
  const { expires_in: lifetime } = kernel.config.auth.one_time_token
  const { id: sessionId } = caller.session
  return act(kernel, bySession(caller), async (kernel, { user }) => {
    if ((await countLine(kernel.db, sessionId)) >= LONGEST_LINE) throw fail('TOO_MANY_DERIVED_SESSIONS')
    return issueTicket(kernel, 'one-time-token', {
      ...{ userId: user.id, address: user.email, sessionId, lifetime },
      payload: { token: tokenHash(caller.token).toString('base64url') },
    })
  })
}

/** Redeems it. The session that asked for it has to live, with the same token. */
export function redeemOneTimeToken(
  kernel: Kernel,
  token: string,
  context: Pick<SignInContext, 'ipAddress' | 'userAgent'>,
): Promise<RenewedSession> {
  const refuse = () => fail('INVALID_ONE_TIME_TOKEN')
  return actOnTicket(kernel, { purposes: ONE_TIME_TOKEN, token }, refuse, (kernel, user, ticket) => {
    const { sessionId: id, payload, expired } = ticket
    if (expired || id === null) throw refuse()
    const origin = { id, tokenHash: Buffer.from(payload.token, 'base64url') }
    return deriveSession(kernel, { way: 'one-time token', userId: user.id, origin, refuse }, context)
  })
}
