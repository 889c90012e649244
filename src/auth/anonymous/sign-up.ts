import { act } from '#identity/act.ts'
import { hashPassword } from '#identity/passwords.ts'
import type { User } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'
import type { UserFields } from '../door/add-user.ts'
import { requestFirstLink } from '../door/admit.ts'
import { browserMark } from '../door/cookies.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { beginNewAddress } from '../email/change-email.ts'
import { fail } from '../errors.ts'
import { acceptablePassword } from '../password/password-policy.ts'
import { applyChange, changeOf } from '../profile/profile.ts'
import { acceptableEmail } from '../user-fields.ts'

/**
 * Sign-up in the session of an anonymous user: no user is added. The address and the password become this user's when the link in the mail is
 * followed. An address that has an account gets a notice instead; neither the answer nor its time shows that.
 */
export async function signUpAsAnonymous(
  kernel: Kernel,
  caller: Caller,
  { password: chosen, email, ...fields }: UserFields & { readonly password: string },
  context: SignInContext,
): Promise<User> {
  if (!kernel.config.auth.email_password.enable_signup) throw fail('SIGN_UP_DISABLED')
  kernel.hashQueue.expectRoom()
  const newEmail = acceptableEmail(email)
  // Refused before the password is hashed.
  changeOf(kernel, fields, caller.user)
  const password = await hashPassword(kernel, await acceptablePassword(kernel, chosen))
  try {
    return await act(kernel, bySession(caller), async (kernel, { user }) => {
      if (!user.isAnonymous) throw fail('USER_IS_NOT_ANONYMOUS')
      const changed = await applyChange(kernel, user, changeOf(kernel, fields, user))
      const { callbackURL } = context
      const mark = randomToken(kernel.random)
      context.markBrowser(mark)
      await beginNewAddress(
        kernel,
        { user, sessionId: caller.session.id },
        { newEmail, callbackURL, waiting: { password, browser: browserMark(mark) } },
      )
      // To the owner of an address with an account: the id is of no user, and nothing marks this browser as the owner's.
      const nobody = uuidv7(kernel.now(), kernel.random)
      const unmarked = { ...context, markBrowser: () => {} }
      await requestFirstLink(kernel, { id: nobody, email: newEmail }, unmarked, { isSignUp: true })
      return changed
    })
  } catch (error) {
    throw isConflict(error, 'user_username_key') ? fail('USERNAME_IS_ALREADY_TAKEN') : error
  }
}
