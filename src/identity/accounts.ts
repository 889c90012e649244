import type { Selectable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { AccountTable } from '#kernel/db/tables.ts'

export const ACCOUNT_COLUMNS = [
  'id',
  'userId',
  'providerId',
  'accountId',
  'scopes',
  'createdAt',
  'updatedAt',
] as const satisfies readonly (keyof AccountTable)[]

/** A way of signing in. Provider `credential` is the password; the others are linked accounts (linked-accounts.ts). */
export type Account = Pick<Selectable<AccountTable>, (typeof ACCOUNT_COLUMNS)[number]>

/** Oldest first. */
export function listAccounts(db: Db, userId: string): Promise<Account[]> {
  return db
    .selectFrom('account')
    .select(ACCOUNT_COLUMNS)
    .where('userId', '=', userId)
    .orderBy('createdAt')
    .orderBy('id')
    .execute()
}

export type Credential = {
  /** The hash. */
  readonly password: string
  /** It signs no one in until it is replaced. */
  readonly mustChangePassword: boolean
}

/** Undefined when the user has no password. */
export async function findCredential(db: Db, userId: string): Promise<Credential | undefined> {
  const found = await db
    .selectFrom('account')
    .select(['password', 'mustChangePassword'])
    .where('userId', '=', userId)
    .where('providerId', '=', 'credential')
    .executeTakeFirst()
  // The column is null for other providers only.
  return found?.password == null ? undefined : { ...found, password: found.password }
}

export const findPassword = async (db: Db, userId: string): Promise<string | undefined> =>
  (await findCredential(db, userId))?.password

/** Where a password comes from that was set without the one before it. `mail`: nothing but the mailbox was shown for it. */
export type PasswordOrigin = 'mail' | 'other'

type NewPassword = {
  /** Of the account, if one has to be added. */
  readonly id: string
  readonly userId: string
  /** The hash. */
  readonly password: string
  readonly now: Date
  /** Absent: its age and origin are those of the password before it, or of the account. */
  readonly origin?: PasswordOrigin | undefined
}

const insertCredential = (db: Db, { id, userId, password, now, origin }: NewPassword) =>
  db.insertInto('account').values({
    id,
    userId,
    providerId: 'credential',
    accountId: userId,
    password,
    ...settingOf(now, origin),
    createdAt: now,
    updatedAt: now,
  })

const settingOf = (now: Date, origin: PasswordOrigin | undefined) =>
  origin && { passwordSetAt: now, passwordFromMail: origin === 'mail' }

/** Sets the password of the user, the first one or another. It need not be changed. */
export async function upsertPassword(db: Db, given: NewPassword): Promise<void> {
  const { password, now: updatedAt, origin } = given
  const changed = { password, updatedAt, mustChangePassword: false, ...settingOf(updatedAt, origin) }
  await insertCredential(db, given)
    .onConflict((on) => on.columns(['providerId', 'accountId']).doUpdateSet(changed))
    .execute()
}

/** From now on the password signs no one in until it is replaced. */
export async function requirePasswordChange(db: Db, userId: string, now: Date): Promise<void> {
  await db
    .updateTable('account')
    .set({ mustChangePassword: true, updatedAt: now })
    .where('userId', '=', userId)
    .where('providerId', '=', 'credential')
    .execute()
}

/** Stores another hash of the same password. */
export async function replacePassword(
  db: Db,
  account: { readonly userId: string; readonly to: string; readonly now: Date },
): Promise<void> {
  await db
    .updateTable('account')
    .set({ password: account.to, updatedAt: account.now })
    .where('userId', '=', account.userId)
    .where('providerId', '=', 'credential')
    .execute()
}

/**
 * Removes all ways of signing in, with the password or without. `exceptOf`: accounts that this session has linked stay, and so does the
 * one that the user was added with.
 */
export async function deleteAccounts(
  db: Db,
  userId: string,
  { keepPassword, exceptOf }: { readonly keepPassword: boolean; readonly exceptOf?: string | undefined },
): Promise<void> {
  const all = db
    .deleteFrom('account')
    .where('userId', '=', userId)
    .$if(exceptOf !== undefined, (others) => others.where('addedBy', '!=', exceptOf ?? ''))
  await (keepPassword ? all.where('providerId', '!=', 'credential') : all).execute()
}

/** Removes an account with its tokens. Whether it is the last way in: ways-in.ts. */
export async function deleteAccount(db: Db, userId: string, id: string): Promise<void> {
  await db.deleteFrom('account').where('userId', '=', userId).where('id', '=', id).execute()
}
