import { type Claims, signJwt } from '#identity/jwt/jws.ts'
import type { JwtKeys } from '#identity/jwt/key-ring.ts'
import { audienceOf, MARK, tokenMark } from '#identity/jwt/session-of-jwt.ts'
import type { LiveSession } from '#identity/live-sessions.ts'
import { effectiveRole } from '#identity/permissions.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

export type Tokens = {
  /** A token of the session, for a caller whose access has been judged. Undefined when no secret of this process opens the key. */
  of(live: LiveSession, template?: string): Promise<string | undefined>
}

type Minted = {
  readonly token: string
  readonly kid: string
  /** The claims but for their times, and the header, as text. */
  readonly about: string
  /** Milliseconds: until then the token is given out again. */
  readonly until: number
}

/** A token that is given out lasts for this many milliseconds, unless its session ends before. */
const LEFT = 60_000
/** Tokens in memory, about 1 KB each. */
const CACHE_SIZE = 10_000

export function createTokens(kernel: Kernel, keys: JwtKeys): Tokens {
  const minted = new Map<string, Minted>()
  const keep = (id: string, token: Minted): void => {
    minted.delete(id)
    minted.set(id, token)
    if (minted.size <= CACHE_SIZE) return
    for (const oldest of minted.keys()) return void minted.delete(oldest)
  }
  return {
    async of(live, template) {
      const kind = kindOf(kernel, template)
      const { signing } = await keys.ringWithKeys()
      if (signing === undefined) return undefined
      const { expiresAt } = live.session
      const id = `${live.session.id} ${template ?? ''}`
      const claims = { ...claimsOf(kernel, live), ...kind.claims }
      const header = { [MARK]: tokenMark(live) }
      const about = JSON.stringify([claims, header])
      const now = kernel.now().getTime()
      const held = minted.get(id)
      if (held?.about === about && held.kid === signing.kid && held.until > now) return held.token
      const end = Math.min(now + kind.expiresIn, expiresAt.getTime())
      const token = signJwt(signing, { ...claims, iat: seconds(now), exp: seconds(end) }, header)
      keep(id, { token, kid: signing.kid, about, until: end - LEFT })
      return token
    },
  }
}

/**
 * Whether the session gets tokens: not an impersonated one, which only reads and may end at any moment, and none that a required second
 * factor keeps from all else.
 */
export const mayHaveToken = ({ config }: Kernel, live: LiveSession): boolean =>
  live.session.impersonatedBy === null && !lacksSecondFactor(config, live)

type Kind = { readonly expiresIn: number; readonly claims: Claims }

/** The settings of the default token, or of a template's. */
function kindOf({ config }: Kernel, name: string | undefined): Kind {
  const { expires_in: expiresIn, templates } = config.auth.jwt
  if (name === undefined) return { expiresIn, claims: {} }
  const template = Object.hasOwn(templates, name) ? templates[name] : undefined
  if (template === undefined) throw fail('TEMPLATE_NOT_FOUND')
  return { expiresIn: template.expires_in, claims: { ...template.claims, aud: template.audience } }
}

/** All that a token may say, but for its times. */
export const CLAIMS = [
  ...['iss', 'aud', 'sub', 'sid', 'role', 'org', 'org_role', 'amr', 'auth_time', 'is_anonymous'],
] as const

/** Absent members are left out. */
function claimsOf(kernel: Kernel, live: LiveSession): Claims {
  const { session, user, organizationRole } = live
  const { activeOrganizationId: org, amr, authTime } = session
  return {
    iss: kernel.publicUrl(),
    aud: audienceOf(kernel),
    sub: user.id,
    sid: session.id,
    role: effectiveRole(kernel, user),
    ...(org !== null && { org }),
    ...(org !== null && organizationRole !== null && { org_role: organizationRole }),
    ...(amr !== null && { amr }),
    ...(authTime !== null && { auth_time: seconds(authTime.getTime()) }),
    is_anonymous: user.isAnonymous,
  }
}

/** A NumericDate (RFC 7519, 2). */
const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000)
