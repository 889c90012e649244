import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { statement } from '#kernel/db/keyed.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { NewUser, User } from './users.ts'

/** What was chosen at a sign-up with an address that has an account (auth.md 3, `hide_registered_emails`). */
export type HiddenSignUp = {
  /** Who has the address. */
  readonly userId: string
  readonly email: string
  readonly password: string
}

/** The user who has the address, with the row locked until the transaction ends. */
export const lockUserWithEmail = (db: Db, email: string): Promise<User | undefined> =>
  db.selectFrom('user').selectAll().where('email', '=', email).forNoKeyUpdate().executeTakeFirst()

/**
 * Keeps a sign-up beside the account that has its address, whose row is locked. Throws a unique violation for a username
 * that is taken (`user_username_key`, `hidden_sign_up_username_key`).
 *
 * Two are kept, so that of any number of sign-ups the same passwords open the same door whether or not there was an
 * account at first: the first one, which an account that was not there before would be, and the last.
 */
export async function insertHiddenSignUp(
  db: Db,
  owner: User,
  { id, username, createdAt, password }: NewUser & { readonly password: string },
): Promise<void> {
  await sql`
    insert into service.hidden_sign_up (id, user_id, is_first, username, password, created_at)
    select ${id}, ${owner.id},
      not exists (select from service.hidden_sign_up where user_id = ${owner.id} and is_first)
        and (${owner.emailVerified} or not exists (
          select from service.account where user_id = ${owner.id} and provider_id = 'credential')),
      ${username}, ${password}, ${createdAt}
    on conflict (user_id, is_first) do update
      set id = excluded.id, username = excluded.username, password = excluded.password, created_at = excluded.created_at`.execute(
    db,
  )
}

const BY = {
  email: statement<HiddenSignUp>(
    `select h.user_id as "userId", u.email, h.password from service.hidden_sign_up h
     join service."user" u on u.id = h.user_id where u.email = $1`,
  ),
  username: statement<HiddenSignUp>(
    `select h.user_id as "userId", u.email, h.password from service.hidden_sign_up h
     join service."user" u on u.id = h.user_id where h.username = $1`,
  ),
}

/** At most two. */
export const findHiddenSignUps = (
  { keyed }: Kernel,
  by: keyof typeof BY,
  value: string,
): Promise<readonly HiddenSignUp[]> => keyed.query(BY[by], [value])
