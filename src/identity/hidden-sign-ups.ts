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

/**
 * Keeps a sign-up beside the account that has its address. Throws a unique violation for a username that is taken
 * (`user_username_key`, `hidden_sign_up_username_key`).
 *
 * All are kept: the account of a new address is the first of its sign-ups, and stays whatever is signed up later.
 */
export async function insertHiddenSignUp(
  db: Db,
  { id: userId }: User,
  { id, username, createdAt, password }: NewUser & { readonly password: string },
): Promise<void> {
  await db.insertInto('hiddenSignUp').values({ id, userId, username, password, createdAt }).execute()
}

const OF = `select h.user_id as "userId", u.email, h.password from service.hidden_sign_up h join service."user" u on u.id = h.user_id`
const BY_USERNAME = statement<HiddenSignUp>(`${OF} where h.username = $1`)
const BY_PASSWORD = statement<HiddenSignUp>(`${OF} where u.email = $1 and h.password = $2 limit 1`)

export async function findHiddenUsername(
  { keyed }: Kernel,
  username: string,
): Promise<HiddenSignUp | undefined> {
  const [found] = await keyed.query(BY_USERNAME, [username])
  return found
}

/** One with this address and the hash of `hashForAddress`. */
export async function findHiddenPassword(
  { keyed }: Kernel,
  email: string,
  hash: string,
): Promise<HiddenSignUp | undefined> {
  const [found] = await keyed.query(BY_PASSWORD, [email, hash])
  return found
}
