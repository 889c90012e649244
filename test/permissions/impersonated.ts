import { insertImpersonation } from '#identity/sessions.ts'
import { tokenHash } from '#identity/tokens.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { type Actor, actor, type TestService, type User } from '#test/harness.ts'

type Options = { readonly parentId: string; readonly lifetime?: number }

/** Makes an impersonated session of the user directly, and returns a caller that sends its token. */
export async function impersonated(
  { url, service }: TestService,
  admin: Pick<User, 'id'>,
  user: Pick<User, 'id'>,
  { parentId, lifetime = 3_600_000 }: Options,
): Promise<Actor & { readonly token: string }> {
  const { db, now, random } = service.kernel
  const token = randomToken(random)
  const at = now()
  const session = {
    ...{ id: uuidv7(at, random), userId: user.id, tokenHash: tokenHash(token), remembered: false },
    ...{ impersonatedBy: admin.id, parentSessionId: parentId },
    ...{ createdAt: at, expiresAt: new Date(at.getTime() + lifetime), ipAddress: null, userAgent: null },
  }
  await insertImpersonation(db, session, 100)
  return { ...actor(url, { authorization: `Bearer ${token}` }), token }
}

/** The id of the caller's session. */
export const sessionIdOf = async (who: Actor): Promise<string> =>
  (await who.get('/api/auth/get-session')).body.session.id
