import { emailFrom } from '#identity/emails.ts'
import { imageFrom } from '#identity/images.ts'
import { nameFrom } from '#identity/names.ts'
import type { ProviderTokens } from '#identity/provider-tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { expectSignedInSince, verifyIdToken } from './client/id-token.ts'
import { describeUser, fetchWithToken, type ProviderClient } from './client/provider-client.ts'
import { askProvider } from './client/requests.ts'
import type { Claims, Profile } from './providers/provider.ts'

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

/** The target of a refusal before an account is proven (record-refusal.ts). */
export const unknownAccount = async (): Promise<undefined> => undefined

/** Tokens of an account, and what is known of the way that they came. */
type Given = {
  readonly tokens: ProviderTokens
  /** Undefined: the caller of the endpoint knows none. */
  readonly nonce: string | undefined
  /** Sent with the authorization response, unsigned (Apple). */
  readonly sent?: Claims | undefined
  /** The person has to have signed in at the provider since then. */
  readonly since?: Date | undefined
}

/** The account of tokens that the provider has just issued to this client. */
export async function identityOfTokens(
  kernel: Kernel,
  client: ProviderClient,
  given: Given,
): Promise<Identity> {
  if (client.server.type === 'oidc') return identityOfIdToken(kernel, client, given)
  const { tokens } = given
  return identify(kernel, client, {
    claims: await describeUser(kernel, client, tokens.accessToken ?? '', ''),
    tokens,
  })
}

/** The account of an ID token. Throws INVALID_ID_TOKEN. */
export async function identityOfIdToken(
  kernel: Kernel,
  client: ProviderClient,
  { tokens, nonce, sent, since }: Given,
): Promise<Identity> {
  const { provider, settings, server, keys, connect } = client
  if (server.type !== 'oidc') throw fail('ID_TOKEN_NOT_SUPPORTED')
  const { issuer, claims_supported: supported, userinfo_endpoint } = (await connect()).serverMetadata()
  const expected = { issuer, audiences: [settings.client_id ?? '', ...settings.audiences], nonce, keys }
  const claims = await verifyIdToken(kernel, tokens.idToken ?? '', expected)
  if (since !== undefined) expectSignedInSince(since, claims, { provider, supported })
  // ID tokens of some issuers have no address. Then the userinfo endpoint describes the same user.
  const isWhole =
    claims.email !== undefined || tokens.accessToken === undefined || userinfo_endpoint === undefined
  const described = isWhole
    ? claims
    : await describeUser(kernel, client, tokens.accessToken, String(claims.sub))
  return identify(kernel, client, { claims: described, sent, tokens })
}

/** Reads the provider's description of a user. */
export function identify(
  kernel: Kernel,
  client: ProviderClient,
  { tokens, ...answers }: { claims: Claims; sent?: Claims | undefined; tokens: ProviderTokens },
): Promise<Identity> {
  const { provider, settings, connect } = client
  return askProvider(kernel, client, 'UNABLE_TO_GET_USER_INFO', async () => {
    const get = async (url: string) => fetchWithToken(await connect(), tokens.accessToken ?? '', url)
    return identityOf(await provider.profile({ ...answers, settings, get }), tokens)
  })
}

/** Throws UNABLE_TO_GET_USER_INFO when the provider names no account. */
function identityOf(profile: Profile, tokens: ProviderTokens): Identity {
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
