import { type Static, Type } from 'typebox'
import { listAccounts } from '#identity/accounts.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, NOT_EMPTY, Nullable, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess, Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { Status } from '../schemas.ts'
import { refreshProviderTokens } from '../social/client/authorization.ts'
import { hasOwnNonce } from '../social/client/id-token.ts'
import type { SocialProviders } from '../social/social-providers.ts'
import { type AccountName, unlinkAccount } from './account.ts'
import { type AccountDescription, describeAccount } from './describe-account.ts'
import { createTokenRefreshes } from './token-refreshes.ts'
import { getAccessToken, refreshTokens } from './tokens.ts'

const LinkedAccount = Type.Object(
  {
    id: Id,
    provider: Type.String(),
    providerId: Type.String(),
    accountId: Type.String(),
    userId: Id,
    scopes: Type.Array(Type.String()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  named('LinkedAccount'),
)

const NamedAccount = Type.Object(
  {
    providerId: Type.Optional(Type.String({ maxLength: 128 })),
    accountId: Type.Optional(
      Type.String({ maxLength: 256, description: 'The id of the row, or of the provider' }),
    ),
  },
  NOT_EMPTY,
)

const TokenSet = Type.Object(
  {
    accessToken: Nullable(Type.String()),
    refreshToken: Nullable(Type.String()),
    idToken: Nullable(
      Type.String({ description: 'Of a sign-in on the page of the provider; it proves nothing here' }),
    ),
    tokenType: Nullable(Type.String()),
    accessTokenExpiresAt: Nullable(Timestamp),
    refreshTokenExpiresAt: Nullable(Timestamp),
    scopes: Type.Array(Type.String()),
    providerId: Type.String(),
    accountId: Type.String({ description: 'The id of the provider' }),
  },
  named('ProviderTokenSet'),
)

const DescribedAccount = Type.Object({
  user: Type.Object(
    {
      id: Type.String({ description: 'The id of the provider' }),
      name: Type.String(),
      email: Nullable(Type.String()),
      emailVerified: Type.Boolean(),
      image: Nullable(Type.String()),
    },
    named('ProviderUser'),
  ),
  data: Type.Record(Type.String(), Type.Unknown(), { description: 'The answer of the provider' }),
  account: Type.Object(
    { id: Id, providerId: Type.String(), accountId: Type.String() },
    named('LinkedAccountIds'),
  ),
})

const REFRESHING = [
  'ACCOUNT_NOT_FOUND',
  'FAILED_TO_REFRESH_ACCESS_TOKEN',
  'TOKEN_REFRESH_NOT_SUPPORTED',
  'PROVIDER_UNAVAILABLE',
]

export function accountRoutes(
  app: App,
  kernel: Kernel,
  access: AuthAccess,
  { providers }: { readonly providers: SocialProviders },
): void {
  const refreshes = createTokenRefreshes(kernel, async (account) => {
    const { providerId } = account
    if (!providers.has(providerId)) throw fail('TOKEN_REFRESH_NOT_SUPPORTED')
    return refreshProviderTokens(kernel, providers.find(providerId), account)
  })
  const { signedIn } = access
  app.route({
    method: 'GET',
    url: '/list-accounts',
    config: { access: signedIn, whileImpersonating: true },
    schema: { summary: 'Ways in which the user can sign in', response: { 200: Type.Array(LinkedAccount) } },
    handler: async (request) => {
      const accounts = await listAccounts(kernel.db, request.caller.user.id)
      return accounts.map((account) => ({ ...account, provider: account.providerId }))
    },
  })
  app.route({
    method: 'POST',
    url: '/unlink-account',
    config: { access: access.fresh, failures: ['ACCOUNT_NOT_FOUND', 'FAILED_TO_UNLINK_LAST_ACCOUNT'] },
    schema: { summary: 'Remove a way of signing in', body: NamedAccount, response: { 200: Status } },
    handler: async (request) => {
      await unlinkAccount(request.kernel, request.caller, request.body)
      return { status: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/get-access-token',
    config: { access: signedIn, failures: [...REFRESHING] },
    schema: {
      summary: 'Tokens of a linked account, refreshed if the access token has expired',
      body: NamedAccount,
      response: { 200: TokenSet },
    },
    handler: async (request) =>
      givenOut(kernel, await getAccessToken(kernel, refreshes, request.caller, request.body)),
  })
  app.route({
    method: 'POST',
    url: '/refresh-token',
    config: { access: signedIn, failures: [...REFRESHING, 'REFRESH_TOKEN_NOT_FOUND'] },
    schema: { summary: 'New tokens of a linked account', body: NamedAccount, response: { 200: TokenSet } },
    handler: async (request) =>
      givenOut(kernel, await refreshTokens(kernel, refreshes, request.caller, request.body)),
  })

  const describing = {
    // Counted for GET too: each asks the provider, which has a place for few requests at once.
    config: {
      access: signedIn,
      limit: 'default',
      failures: [...REFRESHING, 'PROVIDER_NOT_FOUND', 'UNABLE_TO_GET_USER_INFO'],
    } as const,
    schema: {
      summary: 'The provider’s description of a linked account',
      response: { 200: DescribedAccount },
    },
  }
  const answer = async (caller: Caller, name: AccountName) =>
    describedAccount(await describeAccount(kernel, { providers, refreshes }, caller, name))
  app.route({
    method: 'GET',
    url: '/account-info',
    config: describing.config,
    schema: { ...describing.schema, querystring: NamedAccount },
    handler: (request) => answer(request.caller, request.query),
  })
  app.route({
    method: 'POST',
    url: '/account-info',
    config: describing.config,
    schema: { ...describing.schema, body: NamedAccount },
    handler: (request) => answer(request.caller, request.body),
  })
}

const describedAccount = ({
  account,
  identity,
  data,
}: AccountDescription): Static<typeof DescribedAccount> => {
  const { accountId: id, name, email = null, emailVerified, image } = identity
  return { user: { id, name, email, emailVerified, image }, data, account }
}

/**
 * Any session may ask for the tokens, and must not become fresh by them, or another session by its own end. So an ID token is given out only
 * when no endpoint takes it as a proof (hasOwnNonce).
 */
const givenOut = <T extends { readonly idToken: string | null }>(kernel: Kernel, tokens: T): T =>
  tokens.idToken === null || hasOwnNonce(kernel, tokens.idToken) ? tokens : { ...tokens, idToken: null }
