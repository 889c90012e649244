import { type Selectable, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { UserTable } from '#kernel/db/tables.ts'

export type User = Selectable<UserTable>

export type NewUser = {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly image: string | null
  readonly username: string | null
  readonly displayUsername: string | null
  readonly createdAt: Date
}

/** A user together with the password that opens the account, in one statement. Throws a unique violation (`user_email_key`, `user_username_key`). */
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
        .values({ ...user, updatedAt: createdAt })
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

export type UserWithPassword = User & { readonly password: string | null }

export function findUserWithPassword(
  db: Db,
  by: 'email' | 'username',
  value: string,
): Promise<UserWithPassword | undefined> {
  return db
    .selectFrom('user')
    .leftJoin('account', (join) =>
      join.onRef('account.userId', '=', 'user.id').on('account.providerId', '=', sql.lit('credential')),
    )
    .selectAll('user')
    .select('account.password')
    .where(`user.${by}`, '=', value)
    .executeTakeFirst()
}

export async function isUsernameTaken(db: Db, username: string): Promise<boolean> {
  const found = await db.selectFrom('user').select('id').where('username', '=', username).executeTakeFirst()
  return found !== undefined
}

/** A ban that has run out is no ban. */
export const isBanned = ({ banned, banExpires }: Pick<User, 'banned' | 'banExpires'>, now: Date): boolean =>
  banned && (banExpires === null || banExpires > now)
