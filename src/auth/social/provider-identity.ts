import { emailFrom } from '#identity/emails.ts'
import { imageFrom } from '#identity/images.ts'
import { nameFrom } from '#identity/names.ts'
import type { ProviderTokens } from '#identity/provider-tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import type { Profile } from './provider.ts'

/** An account at a provider, as the provider has proven it, in the form in which it is stored. */
export type Identity = {
  readonly accountId: string
  /** Undefined when the provider names none that is valid. */
  readonly email: string | undefined
  readonly emailVerified: boolean
  readonly name: string
  readonly image: string | null
  readonly tokens: ProviderTokens
}

/** An account, and the provider that has proven it. */
export type ProvenIdentity = { readonly provider: string; readonly identity: Identity }

/** The provider has verified the address, or the operator trusts it to have done so. */
export const hasProvenAddress = (
  { config }: Pick<Kernel, 'config'>,
  { provider, identity }: ProvenIdentity,
): boolean => identity.emailVerified || config.auth.social.linking.trusted_providers.includes(provider)

/** Throws UNABLE_TO_GET_USER_INFO when the provider names no account. */
export function identityOf(profile: Profile, tokens: ProviderTokens): Identity {
  const accountId = accountIdOf(profile.id)
  if (accountId === undefined) throw fail('UNABLE_TO_GET_USER_INFO')
  const email = typeof profile.email === 'string' ? emailFrom(profile.email) : undefined
  return {
    accountId,
    email,
    emailVerified: email !== undefined && profile.emailVerified,
    name: textOf(profile.name, nameFrom) || (email?.split('@')[0]?.slice(0, 64) ?? ''),
    image: textOf(profile.image, imageFrom) ?? null,
    tokens,
  }
}

/** A `sub` has at most 255 characters of ASCII (OpenID Connect Core 1.0, section 2). Other servers have numbers. */
function accountIdOf(id: unknown): string | undefined {
  if (typeof id === 'number') return Number.isSafeInteger(id) ? String(id) : undefined
  return typeof id === 'string' && /^[!-~]{1,255}$/.test(id) ? id : undefined
}

/** A text that breaks the rules of the stored form is left out: the user can set another one later. */
const textOf = (value: unknown, parse: (text: string) => string | undefined): string | undefined =>
  typeof value === 'string' ? parse(value) : undefined
