import { tell } from '#identity/tell.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { insertUser, insertUserWithPassword, type NewUser, type User } from '#identity/users.ts'
import { actingAsUser, type Kernel } from '#kernel/kernel.ts'
import { inEveryRun } from '#kernel/outside-answers.ts'
import { uuidv7 } from '#kernel/random.ts'
import { type By, explainingTakenField, fieldsOfNew } from '../custom-fields/acceptable.ts'
import { fail } from '../errors.ts'
import { beforeSignUp, type SignUpMethod } from '../hooks/sign-up.ts'
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
  return {
    ...newIdentity(kernel),
    name: acceptableName(asked.name),
    email,
    emailVerified: false,
    image: acceptableImage(asked.image ?? null),
    username: username?.username ?? null,
    displayUsername: username?.displayUsername ?? null,
    fields: fieldsOfNew(kernel, asked, by),
  }
}

/** The id that a new user keeps when the transaction runs again: hooks are told it (a request adds one user at most). */
export const newIdentity = (kernel: Kernel): Pick<NewUser, 'id' | 'createdAt'> =>
  inEveryRun(kernel, 'new user', () => {
    const createdAt = kernel.now()
    return { id: uuidv7(createdAt, kernel.random), createdAt }
  })

/**
 * Adds the user, with a password by its hash or without one. Throws a unique violation (`user_email_key`, `user_username_key`). The hooks
 * before a sign-up are asked, unless it is an operator who adds the user.
 */
export async function addUser(
  kernel: Kernel,
  user: NewUser,
  method: SignUpMethod | 'by operator',
  password?: string,
): Promise<User> {
  const { db, now, random } = kernel
  const consent = method === 'by operator' ? undefined : beforeSignUp(kernel, user, { method })
  const insert = consent === undefined ? user : { ...user, fields: consent.fields }
  const added = await explainingTakenField(() =>
    password === undefined
      ? insertUser(db, insert)
      : insertUserWithPassword(db, insert, { id: uuidv7(now(), random), password }),
  )
  consent?.expectConsent()
  // A user who signs up is the actor; an admin who adds one stays it.
  const acting = actingAsUser(kernel, added.id)
  const details = { role: added.role, ...(added.isAnonymous && { anonymous: true }) }
  await tell(acting, 'user.created', { targetId: added.id, details })
  return added
}
