import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import type { LiveSession, Sessions } from '../live-sessions.ts'
import { tokenHash } from '../tokens.ts'
import { type Claims, type Jwt, verifyJwt } from './jws.ts'
import type { JwtKeys, KeyRing } from './key-ring.ts'

/** `aud` of the tokens that count as their session here. One for another audience is for that service alone. */
export const audienceOf = ({ config, publicUrl }: Kernel): string => config.auth.jwt.audience ?? publicUrl()

/** The member of the header that names the session's token: claims are for others. */
export const MARK = 'session_mark'

/** Half of the hash of the session's token, which opens nothing. */
export const tokenMark = ({ tokenHash }: Pick<LiveSession, 'tokenHash'>): string =>
  tokenHash.subarray(0, tokenHash.length / 2).toString('base64url')

/**
 * Finds the live session of a token of ours. The token says which session it is; all else, such as roles, comes from the session.
 * `expired` for a token of ours whose time is over. Undefined for every other text, and for tokens whose session has ended, or has another token by
 * now: a proof replaces it because a stranger may have the former one, who shall not act as the session that has shown more. The address is
 * that of `Sessions`.
 */
export type SessionOfJwt = (token: string, address?: string) => Promise<LiveSession | 'expired' | undefined>

/** Verified tokens in memory, about 400 bytes each. */
const CACHE_SIZE = 10_000

export function createSessionOfJwt(kernel: Kernel, keys: JwtKeys, sessions: Sessions): SessionOfJwt {
  return async (token, address) => {
    if (!kernel.config.auth.jwt.enabled || !isJwtShaped(token)) return undefined
    const ring = await keys.ring()
    const hash = tokenHash(token).toString('base64url')
    const known = ring.verified.get(hash)
    // A signature costs a tenth of a millisecond.
    if (known === undefined && address !== undefined) await kernel.limits.expectRoom('default', address)
    const jwt = known ?? verifyJwt(token, (kid) => ring.published.get(kid))
    const named = jwt && namedSession(kernel, jwt.claims)
    if (jwt === undefined || named === undefined) return undefined
    if (named === 'expired') return 'expired'
    if (known === undefined) keepVerified(ring, hash, jwt)
    const live = await sessions.findById(named.session, address)
    if (live === undefined || live.user.id !== named.user) return undefined
    if (tokenMark(live) !== jwt.header[MARK]) return undefined
    // No impersonated session has a token.
    return live.session.impersonatedBy === null ? live : undefined
  }
}

/** Three parts; the first one begins as JSON. */
const isJwtShaped = (text: string): boolean => text.startsWith('eyJ') && text.split('.', 4).length === 3

function keepVerified({ verified }: KeyRing, hash: string, jwt: Jwt): void {
  verified.set(hash, jwt)
  if (verified.size <= CACHE_SIZE) return
  for (const oldest of verified.keys()) return void verified.delete(oldest)
}

/** The ids of session and user, if the token is for this service. */
function namedSession(
  kernel: Kernel,
  { iss, aud, exp, sub, sid }: Claims,
): { readonly session: string; readonly user: string } | 'expired' | undefined {
  const isOurs = iss === kernel.publicUrl() && aud === audienceOf(kernel)
  if (!isOurs || typeof exp !== 'number') return undefined
  if (typeof sub !== 'string' || typeof sid !== 'string' || !UUID.test(sid)) return undefined
  return exp * 1_000 > kernel.now().getTime() ? { session: sid, user: sub } : 'expired'
}
