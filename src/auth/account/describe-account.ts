import { decodeJwt } from 'jose'
import { findProviderTokens, type LinkedAccount } from '#identity/provider-tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Caller, expectAlive } from '../door/access.ts'
import { fail } from '../errors.ts'
import { describeUser, type ProviderClient } from '../social/client/provider-client.ts'
import { type Identity, identify } from '../social/identity.ts'
import type { Claims } from '../social/providers/provider.ts'
import type { SocialProviders } from '../social/social-providers.ts'
import type { AccountName } from './account.ts'
import type { TokenRefreshes } from './token-refreshes.ts'
import { getAccessToken } from './tokens.ts'

export type AccountDescription = {
  readonly account: LinkedAccount
  readonly identity: Identity
  /** The provider's own description. */
  readonly data: Claims
}

/** The provider's description of a linked account. */
export async function describeAccount(
  kernel: Kernel,
  { providers, refreshes }: { readonly providers: SocialProviders; readonly refreshes: TokenRefreshes },
  caller: Caller,
  name: AccountName,
): Promise<AccountDescription> {
  const account = await getAccessToken(kernel, refreshes, caller, name)
  const client = providers.find(account.providerId)
  const data = await claimsOf(kernel, client, account)
  const tokens = account.accessToken === null ? {} : { accessToken: account.accessToken }
  const identity = await identify(kernel, client, { claims: data, tokens })
  if (identity.accountId !== account.accountId) throw fail('UNABLE_TO_GET_USER_INFO')
  await expectStillLinked(kernel, caller, account)
  return { account, identity, data }
}

/** Of the userinfo endpoint. An issuer without one (Apple) has described the user in the ID token, which was checked before it was stored. */
async function claimsOf(
  kernel: Kernel,
  client: ProviderClient,
  { accessToken, idToken, accountId }: LinkedAccount,
): Promise<Claims> {
  const { userinfo_endpoint } = (await client.connect()).serverMetadata()
  if (userinfo_endpoint === undefined && idToken !== null) return decodeJwt(idToken)
  if (accessToken === null) throw fail('UNABLE_TO_GET_USER_INFO')
  return describeUser(kernel, client, accessToken, accountId)
}

/** The answer took as long as the provider liked. */
async function expectStillLinked(kernel: Kernel, caller: Caller, { id }: LinkedAccount): Promise<void> {
  const found = await findProviderTokens(kernel, caller.user.id, id)
  await expectAlive(kernel, caller)
  if (found === undefined) throw fail('ACCOUNT_NOT_FOUND')
}
