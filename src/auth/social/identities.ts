import { fetchUserInfo } from 'openid-client'
import type { ProviderTokens } from '#identity/provider-tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { askProvider } from './ask-provider.ts'
import { verifyIdToken } from './id-token.ts'
import { asClaims, type Claims } from './provider.ts'
import { connectTo, fetchWithToken, type ProviderClient } from './provider-client.ts'
import { type Identity, identityOf } from './provider-identity.ts'

type GivenIdToken = {
  readonly token: string
  /** Undefined: the caller knows none. */
  readonly nonce: string | undefined
  readonly tokens: ProviderTokens
  /** Sent with the authorization response, unsigned (Apple). */
  readonly sent?: Claims | undefined
  /** The person has to have signed in at the provider since then. */
  readonly since?: Date | undefined
}

/** The account of an ID token. Throws INVALID_ID_TOKEN. */
export async function identityOfIdToken(
  kernel: Kernel,
  client: ProviderClient,
  { token, nonce, tokens, sent, since }: GivenIdToken,
): Promise<Identity> {
  if (client.server.type !== 'oidc') throw fail('ID_TOKEN_NOT_SUPPORTED')
  const { client_id = '', audiences } = client.settings
  const { issuer, claims_supported } = (await connectTo(kernel, client)).serverMetadata()
  const expected = { issuer, audiences: [client_id, ...audiences], nonce, keys: client.keys }
  const claims = await verifyIdToken(kernel, token, expected)
  if (since !== undefined) expectSignedInSince(client, { claims, claims_supported }, since)
  const described = await withAddress(kernel, client, claims, tokens.accessToken)
  return identify(kernel, client, { claims: described, sent, tokens })
}

/** Seconds by which the clocks may differ. */
const TOLERANCE = 30

/**
 * A browser that the provider still knows is no proof. Whoever sits at it can take `prompt` and `max_age` out of the address, and then the
 * ID token tells no time of a sign-in, or an old one. So that time is required of an issuer that says that it tells it.
 */
function expectSignedInSince(
  { provider }: ProviderClient,
  { claims, claims_supported }: { readonly claims: Claims; readonly claims_supported: unknown },
  since: Date,
): void {
  const earliest = since.getTime() / 1_000 - TOLERANCE
  const isTold =
    provider.again?.max_age !== undefined &&
    Array.isArray(claims_supported) &&
    claims_supported.includes('auth_time')
  const times = [claims.iat, ...(isTold || claims.auth_time !== undefined ? [claims.auth_time] : [])]
  if (!times.every((time) => typeof time === 'number' && time >= earliest)) throw fail('NOT_SIGNED_IN_AGAIN')
}

/** ID tokens of some issuers have no address. Then the userinfo endpoint describes the same user. */
async function withAddress(
  kernel: Kernel,
  client: ProviderClient,
  claims: Claims,
  accessToken: string | undefined,
): Promise<Claims> {
  const connection = await connectTo(kernel, client)
  const { userinfo_endpoint } = connection.serverMetadata()
  if (claims.email !== undefined || accessToken === undefined || userinfo_endpoint === undefined)
    return claims
  return askProvider(kernel, client, 'UNABLE_TO_GET_USER_INFO', () =>
    fetchUserInfo(connection, accessToken, String(claims.sub)),
  )
}

/** The account of an access token that the provider has just issued to this client. */
export async function identityOfAccessToken(
  kernel: Kernel,
  client: ProviderClient,
  tokens: ProviderTokens,
): Promise<Identity> {
  return identify(kernel, client, { claims: await describeUser(kernel, client, tokens), tokens })
}

/** The answer of the userinfo endpoint. `accountId` is compared with the `sub` of an OpenID Connect issuer. */
export async function describeUser(
  kernel: Kernel,
  client: ProviderClient,
  { accessToken = '' }: ProviderTokens,
  accountId = '',
): Promise<Claims> {
  const connection = await connectTo(kernel, client)
  const { userinfo_endpoint = '' } = connection.serverMetadata()
  return askProvider(kernel, client, 'UNABLE_TO_GET_USER_INFO', async () =>
    client.server.type === 'oidc'
      ? fetchUserInfo(connection, accessToken, accountId)
      : asClaims(await fetchWithToken(connection, accessToken, userinfo_endpoint)),
  )
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
