import type { Db } from '#kernel/db/connect.ts'
import { preparedStatement } from '#kernel/db/pipelined-statements.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fieldsAsJson } from './custom-fields.ts'
import type { NewUser, User } from './users.ts'

/** A sign-up with an address that has an account (auth.md 3, `hide_registered_emails`). */
type HiddenSignUp = {
  /** The user who has the address. */
  readonly userId: string
  readonly email: string
  readonly password: string
}

/**
 * Stores a sign-up with the user who has its address. Throws a unique violation for a username that is taken (`user_username_key`,
 * `hidden_sign_up_username_key`), or for the value of a unique field (`takenField`).
 *
 * Every such sign-up is stored, since its password has to behave as that of an account from then on.
 */
export async function insertHiddenSignUp(
  db: Db,
  { id: userId }: User,
  { id, username, createdAt, password, fields }: NewUser & { readonly password: string },
): Promise<void> {
  await db
    .insertInto('hiddenSignUp')
    .values({ id, userId, username, password, createdAt, fields: fieldsAsJson(fields) })
    .execute()
}

const OF = `select h.user_id as "userId", u.email, h.password from service.hidden_sign_up h join service."user" u on u.id = h.user_id`
const BY_USERNAME = preparedStatement<HiddenSignUp>(`${OF} where h.username = $1`)
const BY_PASSWORD = preparedStatement<HiddenSignUp>(`${OF} where u.email = $1 and h.password = $2 limit 1`)

export async function findHiddenUsername(
  { pipelined }: Kernel,
  username: string,
): Promise<HiddenSignUp | undefined> {
  const [found] = await pipelined.query(BY_USERNAME, [username])
  return found
}

/** By the address and a hash of `hashForAddress`. */
export async function findHiddenPassword(
  { pipelined }: Kernel,
  email: string,
  hash: string,
): Promise<HiddenSignUp | undefined> {
  const [found] = await pipelined.query(BY_PASSWORD, [email, hash])
  return found
}
