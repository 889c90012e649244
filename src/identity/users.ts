import type { Selectable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { preparedStatement, selectList } from '#kernel/db/pipelined-statements.ts'
import type { UserTable } from '#kernel/db/tables.ts'
import type { Kernel, TransactionNotes } from '#kernel/kernel.ts'
import { type CustomFields, fieldsAsJson } from './custom-fields.ts'

export type User = Selectable<UserTable>

export type NewUser = {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly emailVerified: boolean
  readonly image: string | null
  readonly username: string | null
  readonly displayUsername: string | null
  readonly createdAt: Date
  /** Default: null, not proven. */
  readonly emailProvenAt?: Date | null
  /** Default: `user`. */
  readonly role?: string
  /** Default: none. */
  readonly fields?: CustomFields | null
  /** Default: false. */
  readonly isAnonymous?: boolean
}

/** Adds a user without a password. Throws a unique violation (`user_email_key`, `user_username_key`, `takenField`). */
export const insertUser = (db: Db, user: NewUser): Promise<User> =>
  db
    .insertInto('user')
    .values({ ...user, fields: fieldsAsJson(user.fields), updatedAt: user.createdAt })
    .returningAll()
    .executeTakeFirstOrThrow()

/** Adds a user with a password, in one statement. Throws a unique violation (`user_email_key`, `user_username_key`, `takenField`). */
export async function insertUserWithPassword(
  db: Db,
  user: NewUser,
  credential: { readonly id: string; readonly password: string },
): Promise<User> {
  const { createdAt } = user
  return db
    .with('added', (with_) =>
      with_
        .insertInto('user')
        .values({ ...user, fields: fieldsAsJson(user.fields), updatedAt: createdAt })
        .returningAll(),
    )
    .with('credential', (with_) =>
      with_.insertInto('account').values({
        id: credential.id,
        userId: user.id,
        providerId: 'credential',
        accountId: user.id,
        password: credential.password,
        createdAt,
        updatedAt: createdAt,
      }),
    )
    .selectFrom('added')
    .selectAll()
    .executeTakeFirstOrThrow()
}

export const USER_COLUMNS = [
  'id', 'name', 'email', 'emailVerified', 'emailProvenAt', 'image', 'username', 'displayUsername', 'role', 'twoFactorEnabled',
  'isAnonymous', 'banned', 'banReason', 'banExpires', 'createdAt', 'updatedAt', 'fields',
] as const satisfies readonly (keyof User)[] // biome-ignore format: one line reads better

const withPassword = (column: string) =>
  preparedStatement<UserWithPassword>(
    `select ${selectList('u', USER_COLUMNS)}, a.password, a.must_change_password as "mustChangePassword" from service."user" u
     left join service.account a on a.user_id = u.id and a.provider_id = 'credential' where u.${column} = $1`,
  )
const WITH_PASSWORD = { email: withPassword('email'), username: withPassword('username') }

export type UserWithPassword = User & {
  /** The hash. */
  readonly password: string | null
  /** Null without a password. */
  readonly mustChangePassword: boolean | null
}

/** By a unique column, on a shared connection. Every sign-in begins with it. */
export async function findUserWithPassword(
  { pipelined }: Pick<Kernel, 'pipelined'>,
  by: keyof typeof WITH_PASSWORD,
  value: string,
): Promise<UserWithPassword | undefined> {
  const [found] = await pipelined.query(WITH_PASSWORD[by], [value])
  return found
}

export function findUser(db: Db, by: 'id' | 'email', value: string): Promise<User | undefined> {
  return db.selectFrom('user').selectAll().where(by, '=', value).executeTakeFirst()
}

/** The user who has the address; the row is locked until the transaction ends. */
export async function lockUserWithEmail(
  { db, notes }: Pick<Kernel, 'db' | 'notes'>,
  email: string,
): Promise<User | undefined> {
  const user = await db
    .selectFrom('user')
    .selectAll()
    .where('email', '=', email)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (user !== undefined) noteUserLock(notes, user.id)
  return user
}

/** Users come first in the order of locks, which excludes deadlocks (decision 41). */
export function noteUserLock(notes: TransactionNotes | undefined, id: string): void {
  if (notes?.isPastUsers === true && !notes.lockedUsers.has(id))
    throw new Error('a user is locked after an organization (decision 41)')
  notes?.lockedUsers.add(id)
}

/** The newest users whose email, name or username contains the text. Reads every row. */
export function searchUsers(
  db: Db,
  { search, limit }: { readonly search: string | undefined; readonly limit: number },
): Promise<User[]> {
  const newest = db.selectFrom('user').selectAll().orderBy('id', 'desc').limit(limit)
  if (search === undefined) return newest.execute()
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`
  return newest
    .where((is) =>
      is.or([is('email', 'ilike', pattern), is('name', 'ilike', pattern), is('username', 'ilike', pattern)]),
    )
    .execute()
}

export type UserChange = Partial<
  Pick<
    User,
    | 'name'
    | 'email'
    | 'emailVerified'
    | 'emailProvenAt'
    | 'image'
    | 'username'
    | 'displayUsername'
    | 'twoFactorEnabled'
    | 'isAnonymous'
    | 'keepsFactor'
    | 'verifiedByAdmin'
  >
> & { readonly fields?: CustomFields }

/**
 * Another address is unproven unless the change says so. Throws a unique violation (`user_email_key`, `user_username_key`,
 * `takenField`).
 */
export function updateUser(
  db: Db,
  id: string,
  { fields, ...change }: UserChange,
  now: Date,
): Promise<User | undefined> {
  return db
    .updateTable('user')
    .set({
      ...(change.email !== undefined && { emailProvenAt: null }),
      ...(fields !== undefined && { fields: fieldsAsJson(fields) }),
      ...change,
      updatedAt: now,
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

/** Deletes the user with sessions, accounts and tickets. */
export async function deleteUser(db: Db, id: string): Promise<void> {
  await db.deleteFrom('user').where('id', '=', id).execute()
}

export async function isUsernameTaken(db: Db, username: string): Promise<boolean> {
  const found = await db
    .selectFrom('user')
    .select('id')
    .where('username', '=', username)
    .unionAll(db.selectFrom('hiddenSignUp').select('id').where('username', '=', username))
    .executeTakeFirst()
  return found !== undefined
}

/**
 * Has the user shown by a mail that the address is theirs (decision 15)? `emailVerified` may be an admin's or a provider's word: it lets in
 * where verification is required, and shows nothing about who has opened the account.
 */
export const hasProvenEmail = ({ emailProvenAt }: Pick<User, 'emailProvenAt'>): boolean =>
  emailProvenAt !== null

/** False when the ban has expired. */
export const isBanned = ({ banned, banExpires }: Pick<User, 'banned' | 'banExpires'>, now: Date): boolean =>
  banned && (banExpires === null || banExpires > now)

/** The user as of now: an expired ban is none. Its fields stay in the row until the next sign-in or the end of the ban is asked for. */
export const withoutExpiredBan = <U extends Pick<User, 'banned' | 'banReason' | 'banExpires'>>(
  user: U,
  now: Date,
): U => (user.banned && !isBanned(user, now) ? { ...user, ...NO_BAN } : user)

export const NO_BAN = { banned: false, banReason: null, banExpires: null } as const
