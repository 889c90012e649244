import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  refreshTokenGrant,
  type TokenEndpointResponse,
} from 'openid-client'
import type { LinkedAccount, ProviderTokens } from '#identity/provider-tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { authUrl } from '../../auth-url.ts'
import { newNonce } from './id-token.ts'
import type { ProviderClient } from './provider-client.ts'
import { askProvider } from './requests.ts'

/** Has to be known when the browser returns. */
export type Secrets = {
  /** PKCE (RFC 7636). */
  readonly codeVerifier: string
  /** Of OpenID Connect. */
  readonly nonce?: string
}

export const newSecrets = (kernel: Kernel, { server }: ProviderClient): Secrets => ({
  codeVerifier: randomToken(kernel.random),
  ...(server.type === 'oidc' && { nonce: newNonce(kernel) }),
})

/** To be registered at the provider. */
export const redirectUri = (
  kernel: Pick<Kernel, 'config' | 'publicUrl'>,
  { name }: Pick<ProviderClient, 'name'>,
): string => authUrl(kernel, `/callback/${name}`)

type AuthorizationRequest = Secrets & {
  readonly state: string
  readonly scopes: readonly string[]
  readonly loginHint?: string | undefined
  /** The person has to sign in at the provider again. */
  readonly isAgain?: boolean
}

/** The URL to which the browser is sent. */
export async function authorizationUrl(
  kernel: Kernel,
  client: ProviderClient,
  { state, scopes, codeVerifier, nonce, loginHint, isAgain = false }: AuthorizationRequest,
): Promise<string> {
  const connection = await client.connect()
  const parameters = {
    ...client.provider.parameters,
    ...(isAgain && client.provider.again),
    redirect_uri: redirectUri(kernel, client),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    state,
    code_challenge: await calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
    ...(nonce !== undefined && { nonce }),
    ...(loginHint !== undefined && { login_hint: loginHint }),
  }
  return buildAuthorizationUrl(connection, parameters).href
}

/** Redeems the code of an authorization response, whose issuer is compared (RFC 9207). `answer` is its query, whose state was redeemed. */
export async function redeemCode(
  kernel: Kernel,
  client: ProviderClient,
  { answer, codeVerifier, nonce }: Secrets & { readonly answer: URLSearchParams },
): Promise<ProviderTokens> {
  const connection = await client.connect()
  const url = new URL(redirectUri(kernel, client))
  url.search = answer.toString()
  const checks = {
    expectedState: answer.get('state') ?? '',
    pkceCodeVerifier: codeVerifier,
    ...(nonce !== undefined && { expectedNonce: nonce }),
  }
  const given = await askProvider(kernel, client, 'INVALID_CODE', () =>
    authorizationCodeGrant(connection, url, checks),
  )
  return tokensOf(kernel, given)
}

/** New tokens of the account. Throws FAILED_TO_REFRESH_ACCESS_TOKEN. */
export async function refreshProviderTokens(
  kernel: Kernel,
  client: ProviderClient,
  { refreshToken, accountId }: Pick<LinkedAccount, 'refreshToken' | 'accountId'>,
): Promise<ProviderTokens> {
  const connection = await client.connect()
  return askProvider(kernel, client, 'FAILED_TO_REFRESH_ACCESS_TOKEN', async () => {
    const given = await refreshTokenGrant(connection, refreshToken ?? '')
    const { idToken, ...tokens } = tokensOf(kernel, given)
    // The `sub` of an OAuth 2 server need not be the account's id, so that its ID token shows nothing.
    if (idToken === undefined || client.server.type !== 'oidc') return tokens
    expectAccount(given.claims()?.sub, accountId)
    return { ...tokens, idToken }
  })
}

/**
 * Tokens of another account would give its data to this user (OpenID Connect Core 1.0, section 12.2). The library has compared `iss` and
 * `aud`. A signature is not needed, since the token comes from the token endpoint itself (section 3.1.3.7): the keys may be out of reach,
 * and the new refresh token would be lost.
 */
function expectAccount(sub: string | undefined, accountId: string): void {
  if (sub !== accountId) throw new Error('the ID token of the refresh is of another account')
}

/** RFC 6749, section 5.1. GitHub separates scopes by commas and has `refresh_token_expires_in`. */
function tokensOf({ now }: Kernel, given: TokenEndpointResponse): ProviderTokens {
  const after = (seconds: unknown) =>
    typeof seconds === 'number' && seconds >= 0 && seconds < MAX_SECONDS
      ? new Date(now().getTime() + seconds * 1_000)
      : null
  const granted = given.scope?.split(/[ ,]/).filter((scope) => SCOPE.test(scope))
  return {
    accessToken: given.access_token,
    tokenType: given.token_type,
    accessTokenExpiresAt: after(given.expires_in),
    ...(given.refresh_token !== undefined && {
      refreshToken: given.refresh_token,
      refreshTokenExpiresAt: after(given.refresh_token_expires_in),
    }),
    ...(given.id_token !== undefined && { idToken: given.id_token }),
    ...(granted !== undefined && granted.length > 0 && { scopes: granted }),
  }
}

/** Seconds: a century. */
const MAX_SECONDS = 3_155_760_000

/** RFC 6749, section 3.3. */
const SCOPE = /^[!#-[\]-~]{1,256}$/
