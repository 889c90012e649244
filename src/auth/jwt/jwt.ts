import { type Claims, type SigningKey, signJwt } from '#identity/jwt/jws.ts'
import type { JwtKeys } from '#identity/jwt/key-ring.ts'
import { audienceOf, MARK, tokenMark } from '#identity/jwt/session-of-jwt.ts'
import type { LiveSession, Sessions } from '#identity/live-sessions.ts'
import { effectiveRole } from '#identity/permissions.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import { Failure } from '#kernel/errors.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { claimsOfHooks } from '../hooks/token.ts'

export type Tokens = {
  /**
   * A token of the session, for a caller whose access has been judged. Undefined when no secret of this process opens the key. Throws what
   * hooks refuse, and 401 when the session has ended while they were asked.
   */
  of(kernel: Kernel, live: LiveSession, template?: string): Promise<string | undefined>
  /** The same for an answer that goes on without it: undefined when a hook refuses or fails, too. */
  ifGiven(kernel: Kernel, live: LiveSession): Promise<string | undefined>
}

type Minted = {
  readonly token: string
  readonly kid: string
  /** The claims but for their times and for those of hooks, and the header, as text. */
  readonly about: string
  /** Milliseconds: until then the token is given out again. */
  readonly until: number
}

/** A token that is given out lasts for this many milliseconds, unless its session ends before. */
const LEFT = 60_000
/** Tokens in memory, about 1 KB each. */
const CACHE_SIZE = 10_000
/** Milliseconds for which get-session does without a token that a hook has not agreed to: else each request would call the hook. */
const QUIET = 10_000
/** Changes of a session, each while hooks are asked about the state before it. */
const MAX_ROUNDS = 3

export function createTokens(keys: JwtKeys, sessions: Sessions): Tokens {
  const minted = new Map<string, Minted>()
  const quiet = new Map<string, number>()
  const asking = new Map<string, Promise<string>>()

  function mint(kernel: Kernel, token: Described, signing: SigningKey, added: Claims): string {
    const { id, claims, header, about, end } = token
    const now = kernel.now().getTime()
    const exp = Math.min(now + token.expiresIn, end)
    const all = { ...added, ...claims, iat: seconds(now), exp: seconds(exp) }
    const signed = signJwt(signing, all, header)
    keep(minted, id, { token: signed, kid: signing.kid, about, until: exp - LEFT })
    return signed
  }

  /** Throws when the session has ended, or has another token: then the caller has the former one. */
  async function findStill(kernel: Kernel, { session, tokenHash }: LiveSession): Promise<LiveSession> {
    const found = await sessions.findById(session.id, kernel.origin.ipAddress ?? '')
    if (found === undefined || !found.tokenHash.equals(tokenHash)) throw fail('UNAUTHORIZED')
    return found
  }

  /** The session is looked at again when the hooks have answered. */
  async function askAndMint(
    kernel: Kernel,
    before: LiveSession,
    template: string | undefined,
    signing: SigningKey,
  ): Promise<string> {
    let live = before
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const { claims, about } = describe(kernel, live, template)
      const added = await claimsOfHooks(kernel, live, { template, claims })
      const found = await findStill(kernel, live)
      // Its user has a role by now that requires a second factor.
      if (!mayHaveToken(kernel, found)) throw fail('TWO_FACTOR_REQUIRED')
      const still = describe(kernel, found, template)
      if (still.about === about) return mint(kernel, still, signing, added)
      live = found
    }
    throw edge('service_unavailable')
  }

  async function of(kernel: Kernel, live: LiveSession, template?: string): Promise<string | undefined> {
    const token = describe(kernel, live, template)
    const { signing } = await keys.ringWithKeys()
    if (signing === undefined) return undefined
    const { id, about } = token
    const held = minted.get(id)
    if (held?.about === about && held.kid === signing.kid && held.until > kernel.now().getTime())
      return held.token
    if (!kernel.hooks.has('token')) return mint(kernel, token, signing, {})
    const key = `${id} ${signing.kid} ${about}`
    const running =
      asking.get(key) ?? askAndMint(kernel, live, template, signing).finally(() => asking.delete(key))
    asking.set(key, running)
    return running
  }

  return {
    of,
    async ifGiven(kernel, live) {
      const now = kernel.now().getTime()
      if ((quiet.get(live.session.id) ?? 0) > now) return undefined
      try {
        return await of(kernel, live)
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        // A slow hook may have failed after the end of the session.
        await findStill(kernel, live)
        keep(quiet, live.session.id, now + QUIET)
        return undefined
      }
    },
  }
}

/** Adds the entry as the newest one. */
function keep<T>(entries: Map<string, T>, id: string, entry: T): void {
  entries.delete(id)
  entries.set(id, entry)
  if (entries.size <= CACHE_SIZE) return
  for (const oldest of entries.keys()) return void entries.delete(oldest)
}

/** A token that is to be signed. */
type Described = Pick<Minted, 'about'> & {
  readonly id: string
  readonly claims: Claims
  readonly header: Claims
  readonly expiresIn: number
  /** Of the session, milliseconds. */
  readonly end: number
}

function describe(kernel: Kernel, live: LiveSession, template: string | undefined): Described {
  const kind = kindOf(kernel, template)
  const claims = { ...claimsOf(kernel, live), ...kind.claims }
  const header = { [MARK]: tokenMark(live) }
  return {
    ...{ claims, header, about: JSON.stringify([claims, header]), expiresIn: kind.expiresIn },
    id: `${live.session.id} ${template ?? ''}`,
    end: live.session.expiresAt.getTime(),
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
