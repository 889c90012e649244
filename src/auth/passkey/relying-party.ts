import { isIP } from 'node:net'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

/** The site that passkeys are made for (WebAuthn: relying party). */
export type RelyingParty = {
  /** A domain: passkeys work on its pages and on those of its subdomains. */
  readonly id: string
  /** Shown by authenticators. */
  readonly name: string
  /** Origins of the pages and applications that may ask for a passkey. */
  readonly origins: readonly string[]
}

/** Throws PASSKEY_RP_ID_INVALID if the id is an IP address, for which browsers make no passkeys. */
export function relyingParty({ config: { auth }, publicUrl }: Kernel): RelyingParty {
  const { hostname, origin } = new URL(publicUrl())
  const { rp_id: id = hostname, origins } = auth.passkey
  if (isIP(id.replace(/^\[|\]$/g, '')) !== 0) throw fail('PASSKEY_RP_ID_INVALID')
  return { id, name: auth.pages.name ?? id, origins: origins.length === 0 ? [origin] : origins }
}

/** The id by which authenticators know the account, in base64url. It shows nothing about the person. */
export const userHandle = (userId: string): string => Buffer.from(userId).toString('base64url')
