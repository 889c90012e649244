import { tell } from '#identity/tell.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { insertUser, insertUserWithPassword, type NewUser, type User } from '#identity/users.ts'
import { actingAsUser, type Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { type By, explainingTakenField, fieldsOfNew } from '../custom-fields/acceptable.ts'
import { fail } from '../errors.ts'
import { acceptableEmail, acceptableImage, acceptableName } from '../user-fields.ts'

/** The fields that a new user may choose, as sent. Custom ones are beside them. */
export type UserFields = {
  readonly name: string
  readonly email: string
  readonly image?: string | null
  readonly username?: string
  readonly displayUsername?: string
}

/** The user to add; throws when a field is not valid. */
export function newUser(kernel: Kernel, asked: UserFields, by: By = 'user'): NewUser {
  const email = acceptableEmail(asked.email)
  // A display form alone is a username too.
  const handle = asked.username ?? asked.displayUsername
  const username = handle === undefined ? undefined : usernameFrom(handle, asked.displayUsername)
  if (handle !== undefined && username === undefined) throw fail('INVALID_USERNAME')
  const createdAt = kernel.now()
  return {
    id: uuidv7(createdAt, kernel.random),
    name: acceptableName(asked.name),
    email,
    emailVerified: false,
    image: acceptableImage(asked.image ?? null),
    username: username?.username ?? null,
    displayUsername: username?.displayUsername ?? null,
    fields: fieldsOfNew(kernel, asked, by),
    createdAt,
  }
}

/** Adds the user, with a password by its hash or without one. Throws a unique violation (`user_email_key`, `user_username_key`). */
export async function addUser(kernel: Kernel, user: NewUser, password?: string): Promise<User> {
  const { db, now, random } = kernel
  const added = await explainingTakenField(() =>
    password === undefined
      ? insertUser(db, user)
      : insertUserWithPassword(db, user, { id: uuidv7(now(), random), password }),
  )
  // A user who signs up is the actor; an admin who adds one stays it.
  const acting = actingAsUser(kernel, added.id)
  const details = { role: added.role, ...(added.isAnonymous && { anonymous: true }) }
  await tell(acting, 'user.created', { targetId: added.id, details })
  return added
}
