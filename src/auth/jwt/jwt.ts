import { hash } from 'node:crypto'
import { type Claims, type SigningKey, signJwt } from '#identity/jwt/jws.ts'
import type { JwtKeys } from '#identity/jwt/key-ring.ts'
import { audienceOf, MARK, tokenMark } from '#identity/jwt/session-of-jwt.ts'
import type { LiveSession, Sessions } from '#identity/live-sessions.ts'
import { effectiveRole } from '#identity/permissions.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import type { Session } from '#identity/sessions.ts'
import { Failure } from '#kernel/errors.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { claimsOfHooks, toldOfUser } from '../hooks/token.ts'

export type Tokens = {
  /**
   * A token of the session, for a caller whose access has been judged. Undefined when no secret of this process opens the key. Throws what
   * hooks refuse, 401 when the session has ended while they were asked, and 429 when the address may not have them asked.
   */
  of(kernel: Kernel, live: LiveSession, template?: string): Promise<string | undefined>
  /** The same for an answer that goes on without it: undefined when a hook refuses or fails, too. */
  ifGiven(
    kernel: Kernel,
    live: LiveSession,
  ): Promise<{ readonly token: string | undefined } | 'session ended'>
  /** The token that `ifGiven` gives out again at this moment: undefined if it has to sign one, ask hooks or read keys, or gives none. */
  held(kernel: Kernel, live: LiveSession): string | undefined
}

type Minted = {
  readonly token: string
  readonly kid: string
  /** A hash of the claims but for their times and for those of hooks, of the header, and of all else that hooks were told. */
  readonly about: string
  /** Milliseconds: the time in which the token is given out again. The clock can be set back. */
  readonly from: number
  readonly until: number
}

/** A token that hooks have not agreed to. */
type Refused = Pick<Minted, 'about'> & { readonly failure: Failure; readonly at: number }

/** A token that is given out lasts for this many milliseconds, unless its session ends before. */
const LEFT = 60_000
/** Tokens in memory, about 1 KB each. */
const CACHE_SIZE = 10_000
/** Milliseconds for which hooks are not asked again, whatever they have said: else each request would call them. */
const REPEATED = 1_000
/** The same for get-session, which does without a token. */
const QUIET = 10_000
/** Changes of a session, each while hooks are asked about the state before it. */
const MAX_ROUNDS = 3

export function createTokens(keys: JwtKeys, sessions: Sessions): Tokens {
  const minted = new Map<string, Minted>()
  const refused = new Map<string, Refused>()
  const asking = new Map<string, Promise<string | undefined>>()
  const described = new WeakMap<Session, Described>()

  /**
   * Of the token without a template. The row of a session in memory stays the same object, read together with its user, until something of
   * the two has changed; what is around it is copied for each request.
   */
  function describeDefault(kernel: Kernel, live: LiveSession): Described {
    const known = described.get(live.session)
    if (known !== undefined) return known
    const token = describe(kernel, live, undefined)
    described.set(live.session, token)
    return token
  }

  function mint(kernel: Kernel, token: Described, signing: SigningKey, added: Claims): string {
    const { id, claims, header, about, end } = token
    const now = kernel.now().getTime()
    const exp = Math.min(now + token.expiresIn, end)
    const all = { ...added, ...claims, iat: seconds(now), exp: seconds(exp) }
    const signed = signJwt(signing, all, header)
    refused.delete(id)
    // In the last minute of its session too: else each request would have hooks asked.
    const until = Math.max(exp - LEFT, now + REPEATED)
    keep(minted, id, { token: signed, kid: signing.kid, about, from: now, until })
    return signed
  }

  /** Why there is no token, if hooks have said so within these milliseconds. */
  function refusedWithin(time: number, kernel: Kernel, { id, about }: Described): Failure | undefined {
    const last = refused.get(id)
    if (last === undefined || last.about !== about) return undefined
    return Math.abs(kernel.now().getTime() - last.at) < time ? last.failure : undefined
  }

  function tokenInMemory(kernel: Kernel, { id, about }: Described, { kid }: SigningKey): string | undefined {
    const held = minted.get(id)
    if (held === undefined || held.about !== about || held.kid !== kid) return undefined
    const now = kernel.now().getTime()
    return held.from <= now && now < held.until ? held.token : undefined
  }

  /** The token in memory, or throws the failure there. Undefined: hooks are to be asked. */
  function settled(kernel: Kernel, token: Described, signing: SigningKey): string | undefined {
    const held = tokenInMemory(kernel, token, signing)
    if (held !== undefined) return held
    const failure = refusedWithin(REPEATED, kernel, token)
    if (failure !== undefined) throw failure
    return undefined
  }

  async function claimsFor(kernel: Kernel, live: LiveSession, token: Described): Promise<Claims> {
    const { id, about } = token
    try {
      return await claimsOfHooks(kernel, live, token)
    } catch (failure) {
      if (failure instanceof Failure) keep(refused, id, { about, failure, at: kernel.now().getTime() })
      throw failure
    }
  }

  /** The session as it is after a wait, if it still gets tokens. */
  async function expectStill(kernel: Kernel, before: LiveSession): Promise<LiveSession> {
    const found = await sessions.findStill(before)
    if (found === undefined) throw fail('UNAUTHORIZED')
    // Its user has a role by now that requires a second factor.
    if (!mayHaveToken(kernel, found)) throw fail('TWO_FACTOR_REQUIRED')
    return found
  }

  /** The session and the key are looked at again when the hooks have answered. */
  async function askAndMint(
    kernel: Kernel,
    before: LiveSession,
    template: string | undefined,
  ): Promise<string | undefined> {
    let live = before
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const token = describe(kernel, live, template)
      const added = await claimsFor(kernel, live, token)
      const { signing } = await keys.ringWithKeys()
      if (signing === undefined) return undefined
      const found = await expectStill(kernel, live)
      const still = describe(kernel, found, template)
      if (still.about === token.about) return mint(kernel, still, signing, added)
      live = found
    }
    throw edge('service_unavailable')
  }

  async function tokenOf(
    kernel: Kernel,
    live: LiveSession,
    token: Described,
    expectMayAsk: () => Promise<void>,
  ): Promise<string | undefined> {
    const held = keys.held()?.signing
    if (held !== undefined) return signedBy(kernel, held, live, token, expectMayAsk)
    const { signing } = await keys.ringWithKeys()
    if (signing === undefined) return undefined
    // The keys had to be read, which may have taken any time.
    const still = await expectStill(kernel, live)
    return signedBy(kernel, signing, still, describe(kernel, still, token.template), expectMayAsk)
  }

  async function signedBy(
    kernel: Kernel,
    signing: SigningKey,
    live: LiveSession,
    token: Described,
    expectMayAsk: () => Promise<void>,
  ): Promise<string | undefined> {
    const before = settled(kernel, token, signing)
    if (before !== undefined) return before
    if (!kernel.hooks.has('token')) return mint(kernel, token, signing, {})
    await expectMayAsk()
    // Another request may have been answered meanwhile.
    const meanwhile = settled(kernel, token, signing)
    if (meanwhile !== undefined) return meanwhile
    const { id, about, template } = token
    const key = `${id} ${signing.kid} ${about}`
    const running = asking.get(key) ?? askAndMint(kernel, live, template).finally(() => asking.delete(key))
    asking.set(key, running)
    return running
  }

  return {
    async of(kernel, live, template) {
      const { limits, origin } = kernel
      return tokenOf(kernel, live, describe(kernel, live, template), () =>
        limits.consume('default', origin.ipAddress ?? ''),
      )
    },
    async ifGiven(kernel, live) {
      const token = describeDefault(kernel, live)
      if (refusedWithin(QUIET, kernel, token) !== undefined) return { token: undefined }
      try {
        return { token: await tokenOf(kernel, live, token, async () => {}) }
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        // A slow hook may have failed after the end of the session.
        return (await sessions.findStill(live)) === undefined ? 'session ended' : { token: undefined }
      }
    },
    held(kernel, live) {
      const signing = keys.held()?.signing
      if (signing === undefined) return undefined
      const token = describeDefault(kernel, live)
      return refusedWithin(QUIET, kernel, token) === undefined
        ? tokenInMemory(kernel, token, signing)
        : undefined
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
  readonly template: string | undefined
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
  const all = JSON.stringify([claims, header, toldOfUser(kernel, live)])
  return {
    ...{ template, claims, header, about: hash('sha256', all, 'base64url'), expiresIn: kind.expiresIn },
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
