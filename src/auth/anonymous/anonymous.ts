import { act } from '#identity/act.ts'
import { ANONYMOUS, placeholderOf } from '#identity/placeholders.ts'
import type { NewUser } from '#identity/users.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { bySession, type Caller } from '../door/access.ts'
import { addUser, newIdentity } from '../door/add-user.ts'
import { type Admission, admit } from '../door/admit.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { removeUser } from '../profile/delete-account.ts'

/** Adds a user who has nothing but the session that begins. */
export async function signInAnonymously(
  kernel: Kernel,
  caller: Caller | undefined,
  context: SignInContext,
): Promise<Admission> {
  if (caller?.user.isAnonymous === true) throw fail('ANONYMOUS_USERS_CANNOT_SIGN_IN_AGAIN_ANONYMOUSLY')
  return atomically(kernel, async (kernel) => {
    const { id: userId } = await addUser(kernel, anonymousUser(kernel), 'anonymous')
    const refuse = () => new Error('the user was added in this transaction and is gone')
    return admit(kernel, { way: 'anonymous', shown: [], proof: { userId }, refuse }, context)
  })
}

function anonymousUser(kernel: Kernel): NewUser {
  const { id, createdAt } = newIdentity(kernel)
  return {
    ...{ id, name: ANONYMOUS, email: placeholderOf(id), emailVerified: false, isAnonymous: true },
    ...{ image: null, username: null, displayUsername: null, createdAt },
  }
}

/** The session is all that can be shown for an anonymous user, so it is enough. */
export const deleteAnonymousUser = (kernel: Kernel, caller: Caller): Promise<void> =>
  act(kernel, bySession(caller), async (kernel, { user }) => {
    if (!user.isAnonymous) throw fail('USER_IS_NOT_ANONYMOUS')
    if (!kernel.config.auth.delete_user.enabled) throw fail('DELETE_USER_DISABLED')
    await removeUser(kernel, user)
  })
