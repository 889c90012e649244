import { emailFrom } from '#identity/emails.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { findUser, findUserWithPassword, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** How commands name a user. */
export const WHO = 'id, email or username'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export async function existing(kernel: Kernel, name: string): Promise<User> {
  const email = emailFrom(name)
  const found = UUID.test(name)
    ? await findUser(kernel.db, 'id', name)
    : email !== undefined
      ? await findUser(kernel.db, 'email', email)
      : await findUserWithPassword(kernel, 'username', usernameFrom(name)?.username ?? name)
  if (found === undefined) throw new Error(`There is no user ${name}.`)
  return found
}

/** 20 characters, 120 bits; longer where the policy wants it. */
export function madeUp({ config, random }: Kernel): string {
  const characters = Math.max(20, config.auth.email_password.password_min_length)
  return random(Math.ceil((characters * 3) / 4)).toString('base64url')
}
