import { emailFrom } from '#identity/emails.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { findUser, findUserWithPassword, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'

/** Help text of the `<user>` argument. */
export const USER_ARGUMENT = 'id, email or username'

/** Finds a user by id, email or username. Throws if there is none. */
export async function findNamedUser(kernel: Kernel, name: string): Promise<User> {
  const email = emailFrom(name)
  const found = UUID.test(name)
    ? await findUser(kernel.db, 'id', name)
    : email !== undefined
      ? await findUser(kernel.db, 'email', email)
      : await findUserWithPassword(kernel, 'username', usernameFrom(name)?.username ?? name)
  if (found === undefined) throw new Error(`There is no user ${name}.`)
  return found
}

/** A random password of 20 characters (120 bits), or longer if the password policy requires it. */
export function generatePassword({ config, random }: Kernel): string {
  const characters = Math.max(20, config.auth.email_password.password_min_length)
  return random(Math.ceil((characters * 3) / 4)).toString('base64url')
}
