import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { ACCOUNT_COLUMNS, type Account } from './accounts.ts'
import { type ProviderTokens, tokenColumns } from './provider-tokens.ts'

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
): Promise<(Account & { readonly settlesAt: Date | null }) | undefined> =>
  db
    .selectFrom('account')
    .select([...ACCOUNT_COLUMNS, 'settlesAt'])
    .where('providerId', '=', providerId)
    .where('providerId', '!=', 'credential')
    .where('accountId', '=', accountId)
    .executeTakeFirst()

/** The session that links an account, and until when the account is no proof of its own; null: it is one. */
type AddedBy = { readonly addedBy: string; readonly settlesAt: Date | null }

/** `adding`: absent when a sign-in links. Undefined when the provider's account is linked already, to this user or another. */
export async function insertLinkedAccount(
  { db, secrets, now, random }: Kernel,
  userId: string,
  { providerId, accountId }: ProviderAccount,
  tokens: ProviderTokens,
  adding?: AddedBy,
): Promise<Account | undefined> {
  const time = now()
  const id = uuidv7(time, random)
  return db
    .insertInto('account')
    .values({
      id,
      userId,
      providerId,
      accountId,
      ...adding,
      createdAt: time,
      updatedAt: time,
      ...tokenColumns(secrets, id, tokens),
    })
    .onConflict((on) => on.columns(['providerId', 'accountId']).doNothing())
    .returning(ACCOUNT_COLUMNS)
    .executeTakeFirst()
}
