import { hash } from 'node:crypto'
import { decodeJwt } from 'jose'
import type { RowLevelSecurity, TrustedIssuer } from '#databases/drivers/driver.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { createIssuerKeys, type IssuerKeys } from './issuer-keys.ts'
import { type JwtClaims, jwtClaims } from './jwt-claims.ts'
import { createVerifiedJwts, type VerifiedJwts } from './verified-jwts.ts'
import { verifyJwt } from './verify-jwt.ts'

/** Callers who present a JWT of an issuer that their client trusts. */
type JwtCallers = {
  /**
   * The claims for policies. Throws a 401 for a token that is not valid now, and issuer_unavailable. Without an address, the caller was let in
   * by the token before, and guesses nothing.
   */
  find(token: string, security: RowLevelSecurity, address?: string): Promise<JwtCaller>
}

export type JwtCaller = JwtClaims & {
  /** Whether the token is still valid, without verifying it. False when memory cannot tell. */
  isAsFound(): boolean
}

/** Of one client: its issuers by `iss`, and the tokens that they have signed. */
type Trust = {
  readonly issuers: ReadonlyMap<string, { readonly settings: TrustedIssuer; readonly keys: IssuerKeys }>
  readonly verified: VerifiedJwts
  readonly besideSessions: boolean
}

/** Bytes of the verified tokens of a client. */
const KEPT_BYTES = 8 * 1_024 * 1_024

export function createJwtCallers(kernel: Kernel): JwtCallers {
  const trustOf = createTrusts(kernel)
  return {
    async find(token, security, address) {
      const trust = trustOf(security)
      const key = hash('sha256', token, 'base64url')
      const kept = stillValid(trust, key, kernel.now())
      const found = (claims: JwtClaims) => ({
        ...claims,
        isAsFound: () => stillValid(trust, key, kernel.now())?.claims === claims.claims,
      })
      if (kept !== undefined) return found(kept)
      // Before any work for the token.
      if (address !== undefined) await kernel.limits.expectRoom('default', address)
      try {
        return found(await verified(trust, token, key, kernel))
      } catch (error) {
        // Count invalid tokens, to limit their cost.
        if (error instanceof Failure && error.status === 401 && address !== undefined)
          await kernel.limits.consume('default', address)
        throw error
      }
    },
  }
}

/** The clients of a process have their settings for as long as it runs. Clients share the keys of an issuer. */
function createTrusts(kernel: Kernel): (security: RowLevelSecurity) => Trust {
  const trusts = new WeakMap<RowLevelSecurity, Trust>()
  const allKeys = new Map<string, IssuerKeys>()

  function keysOf(settings: TrustedIssuer): IssuerKeys {
    const name = JSON.stringify([settings.issuer, settings.jwks_url])
    const keys = allKeys.get(name) ?? createIssuerKeys(kernel, settings)
    allKeys.set(name, keys)
    return keys
  }

  return (security) => {
    const { issuers = [], refusesSessions = false } = security
    const trust = trusts.get(security) ?? {
      issuers: new Map(issuers.map((settings) => [settings.issuer, { settings, keys: keysOf(settings) }])),
      verified: createVerifiedJwts(KEPT_BYTES),
      besideSessions: !refusesSessions,
    }
    trusts.set(security, trust)
    return trust
  }
}

function stillValid({ issuers, verified }: Trust, key: string, now: Date): JwtClaims | undefined {
  const kept = verified.get(key)
  if (kept === undefined) return undefined
  const isValid = kept.expiresAt > now.getTime() && issuers.get(kept.issuer)?.keys.version() === kept.version
  if (isValid) return kept
  verified.delete(key)
  return undefined
}

async function verified(trust: Trust, token: string, key: string, { now }: Kernel): Promise<JwtClaims> {
  const issuer = trust.issuers.get(issuerIn(token))
  if (issuer === undefined) throw fail('jwt_issuer_unknown')
  const { settings, keys } = issuer
  // Before: if the issuer withdraws the key meanwhile, the token is verified again.
  const version = keys.version()
  const payload = await verifyJwt(token, { issuer: settings, keys: keys.find, now: now() })
  const caller = jwtClaims(payload, settings, trust)
  trust.verified.set(key, {
    ...caller,
    issuer: settings.issuer,
    version,
    expiresAt: payload.exp * 1_000,
  })
  return caller
}

/** It chooses the keys, and proves nothing: the token is verified with the same issuer. */
function issuerIn(token: string): string {
  try {
    const { iss } = decodeJwt(token)
    return typeof iss === 'string' ? iss : ''
  } catch (cause) {
    throw fail('jwt_invalid', { hint: 'It is not a JWT', cause })
  }
}
