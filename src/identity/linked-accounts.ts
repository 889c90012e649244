import type { Selectable } from 'kysely'
import type { AccountTable } from '#kernel/db/tables.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { ACCOUNT_COLUMNS, type Account } from './accounts.ts'

/** Tokens that a provider issued for one of its accounts. In an update, an absent member leaves the stored one. */
export type ProviderTokens = {
  readonly accessToken?: string
  readonly refreshToken?: string
  readonly idToken?: string
  /** As the provider spells it, like `Bearer`. */
  readonly tokenType?: string
  /** That the provider granted. */
  readonly scopes?: readonly string[]
  /** Null: the provider does not say. */
  readonly accessTokenExpiresAt?: Date | null
  readonly refreshTokenExpiresAt?: Date | null
}

/** An account at a provider. The provider's name is never `credential`, which is the password. */
export type ProviderAccount = {
  readonly providerId: string
  /** The provider's id of the account, which never changes (OpenID Connect: `sub`). */
  readonly accountId: string
}

/** The user's account at a provider, of any user. */
export const findLinkedAccount = (
  { db }: Pick<Kernel, 'db'>,
  { providerId, accountId }: ProviderAccount,
): Promise<Account | undefined> =>
  db
    .selectFrom('account')
    .select(ACCOUNT_COLUMNS)
    .where('providerId', '=', providerId)
    .where('providerId', '!=', 'credential')
    .where('accountId', '=', accountId)
    .executeTakeFirst()

/** Undefined when the provider's account is linked already, to this user or another. */
export async function insertLinkedAccount(
  { db, secrets, now, random }: Kernel,
  userId: string,
  { providerId, accountId }: ProviderAccount,
  tokens: ProviderTokens,
): Promise<Account | undefined> {
  const time = now()
  const id = uuidv7(time, random)
  return db
    .insertInto('account')
    .values({
      ...{ id, userId, providerId, accountId, createdAt: time, updatedAt: time },
      ...columnsOf(secrets, id, tokens),
    })
    .onConflict((on) => on.columns(['providerId', 'accountId']).doNothing())
    .returning(ACCOUNT_COLUMNS)
    .executeTakeFirst()
}

/** Stores the members that are present. False when the account is not linked any more. */
export async function updateProviderTokens(
  { db, secrets, now }: Kernel,
  id: string,
  tokens: ProviderTokens,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('account')
    .set({ ...columnsOf(secrets, id, tokens), updatedAt: now() })
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

type TokenColumns = Pick<
  Selectable<AccountTable>,
  | 'sealedAccessToken'
  | 'sealedRefreshToken'
  | 'sealedIdToken'
  | 'tokenType'
  | 'scopes'
  | 'accessTokenExpiresAt'
  | 'refreshTokenExpiresAt'
>

/** Columns of the members that are present. A sealed token opens in the row with this id only. */
function columnsOf(
  secrets: Secrets,
  id: string,
  { accessToken, refreshToken, idToken, scopes, ...plain }: ProviderTokens,
): Partial<TokenColumns> {
  const seal = (token: string) => secrets.seal('provider-token', token, id)
  return {
    ...plain,
    ...(accessToken !== undefined && { sealedAccessToken: seal(accessToken) }),
    ...(refreshToken !== undefined && { sealedRefreshToken: seal(refreshToken) }),
    ...(idToken !== undefined && { sealedIdToken: seal(idToken) }),
    ...(scopes !== undefined && { scopes: [...scopes] }),
  }
}
