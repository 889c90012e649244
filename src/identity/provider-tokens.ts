import type { Selectable } from 'kysely'
import { CLOCK_TOLERANCE } from '#kernel/clock.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { AccountTable } from '#kernel/db/tables.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { ACCOUNT_COLUMNS, type Account } from './accounts.ts'

/** The purpose of their seal; its owner is the id of the account. */
export const PROVIDER_TOKEN = 'provider-token'

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

/** A linked account with its tokens. A token that was sealed with a lost secret is null. */
export type LinkedAccount = Account &
  Pick<Selectable<AccountTable>, 'tokenType' | 'accessTokenExpiresAt' | 'refreshTokenExpiresAt'> & {
    readonly accessToken: string | null
    readonly refreshToken: string | null
    readonly idToken: string | null
    /** Of the stored tokens: the sealed refresh token, which is sealed anew whenever tokens are replaced. Null without one. */
    readonly version: string | null
  }

/** The user's linked accounts, oldest first. */
export async function listLinkedAccounts(
  { db, secrets }: Pick<Kernel, 'db' | 'secrets'>,
  userId: string,
): Promise<LinkedAccount[]> {
  const rows = await linkedAccounts(db, userId).orderBy('createdAt').orderBy('id').execute()
  return rows.map((row) => opened(secrets, row))
}

export async function findProviderTokens(
  { db, secrets }: Pick<Kernel, 'db' | 'secrets'>,
  userId: string,
  id: string,
): Promise<LinkedAccount | undefined> {
  const row = await linkedAccounts(db, userId).where('id', '=', id).executeTakeFirst()
  return row && opened(secrets, row)
}

const TOKEN_COLUMNS = [
  'sealedAccessToken',
  'sealedRefreshToken',
  'sealedIdToken',
  'tokenType',
  'accessTokenExpiresAt',
  'refreshTokenExpiresAt',
] as const satisfies readonly (keyof AccountTable)[]
type TokenColumns = Pick<Selectable<AccountTable>, (typeof TOKEN_COLUMNS)[number]>

const linkedAccounts = (db: Db, userId: string) =>
  db
    .selectFrom('account')
    .select([...ACCOUNT_COLUMNS, ...TOKEN_COLUMNS])
    .where('userId', '=', userId)
    .where('providerId', '!=', 'credential')

function opened(secrets: Secrets, row: Account & TokenColumns): LinkedAccount {
  const { sealedAccessToken, sealedRefreshToken, sealedIdToken, ...account } = row
  const open = (sealed: string | null) =>
    sealed === null ? null : (secrets.open(PROVIDER_TOKEN, sealed, row.id) ?? null)
  return {
    ...account,
    accessToken: open(sealedAccessToken),
    refreshToken: open(sealedRefreshToken),
    idToken: open(sealedIdToken),
    version: sealedRefreshToken,
  }
}

/** Stores the members that are present. False when the account is not linked any more. */
export async function updateProviderTokens(
  { db, secrets, now }: Kernel,
  id: string,
  tokens: ProviderTokens,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('account')
    .set({ ...tokenColumns(secrets, id, tokens), updatedAt: now() })
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Columns of the members that are present. A sealed token opens in the row with this id only. */
export function tokenColumns(
  secrets: Secrets,
  id: string,
  { accessToken, refreshToken, idToken, scopes, ...plain }: ProviderTokens,
): Partial<TokenColumns & { scopes: string[] }> {
  const seal = (token: string) => secrets.seal(PROVIDER_TOKEN, token, id)
  return {
    ...plain,
    ...(accessToken !== undefined && { sealedAccessToken: seal(accessToken) }),
    ...(refreshToken !== undefined && { sealedRefreshToken: seal(refreshToken) }),
    ...(idToken !== undefined && { sealedIdToken: seal(idToken) }),
    ...(scopes !== undefined && { scopes: [...scopes] }),
  }
}

/** The state of the tokens that a refresh starts from. */
type Refreshable = Pick<LinkedAccount, 'id' | 'version'>

/** False when the tokens were replaced, or the account is not linked any more. */
export async function isUnchanged(db: Db, { id, version }: Refreshable): Promise<boolean> {
  const found = await db
    .selectFrom('account')
    .select('id')
    .where('id', '=', id)
    .where('sealedRefreshToken', '=', version)
    .executeTakeFirst()
  return found !== undefined
}

/**
 * Begins a refresh that ends at `until` at the latest. True for one of any number of concurrent processes. A turn that lasts longer is of a
 * time before the clock was set back.
 */
export async function beginRefresh(
  { db, now }: Pick<Kernel, 'db' | 'now'>,
  { id, version }: Refreshable,
  until: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('account')
    .set({ refreshingUntil: until })
    .where('id', '=', id)
    .where('sealedRefreshToken', '=', version)
    .where((of) =>
      of.or([
        of('refreshingUntil', 'is', null),
        of('refreshingUntil', '<=', now()),
        of('refreshingUntil', '>', new Date(until.getTime() + CLOCK_TOLERANCE)),
      ]),
    )
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Ends a refresh without new tokens. No effect when they were stored. */
export async function abandonRefresh(db: Db, { id }: Refreshable, until: Date): Promise<void> {
  await db
    .updateTable('account')
    .set({ refreshingUntil: null })
    .where('id', '=', id)
    .where('refreshingUntil', '=', until)
    .execute()
}

/** Ends a refresh with new tokens. No effect when the account has others by now, or is not linked any more. */
export async function completeRefresh(
  { db, secrets, now }: Kernel,
  { id, version, refreshToken }: Refreshable & Pick<LinkedAccount, 'refreshToken'>,
  tokens: ProviderTokens,
): Promise<void> {
  // Without a new refresh token the old one stays valid. It is sealed anew, which changes the version.
  const stored = refreshToken === null ? tokens : { refreshToken, ...tokens }
  await db
    .updateTable('account')
    .set({ ...tokenColumns(secrets, id, stored), refreshingUntil: null, updatedAt: now() })
    .where('id', '=', id)
    .where('sealedRefreshToken', '=', version)
    .execute()
}
