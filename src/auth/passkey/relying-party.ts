import { isDomain, type PasskeySite, passkeySite } from '#kernel/config/passkey-site.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

/** The site that passkeys are made for (WebAuthn: relying party). */
export type RelyingParty = {
  readonly id: PasskeySite['rpId']
  /** Shown by authenticators. */
  readonly name: string
  readonly origins: PasskeySite['origins']
}

/** Throws PASSKEY_RP_ID_INVALID if the id is an IP address, for which browsers make no passkeys. */
export function relyingParty({ config, publicUrl }: Kernel): RelyingParty {
  const { rpId: id, origins } = passkeySite(config, publicUrl())
  if (!isDomain(id)) throw fail('PASSKEY_RP_ID_INVALID')
  return { id, name: config.auth.pages.name ?? id, origins }
}

/** The id by which authenticators know the account, in base64url. It shows nothing about the person. */
export const userHandle = (userId: string): string => Buffer.from(userId).toString('base64url')
