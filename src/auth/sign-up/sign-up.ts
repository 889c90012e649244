import type { Static } from 'typebox'
import { hashForAddress, hashPassword } from '#identity/passwords.ts'
import type { SignedInUser } from '#identity/schemas.ts'
import type { NewUser, User } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { addUser, newUser, type UserFields } from '../door/add-user.ts'
import { type Admission, admit, requestFirstLink } from '../door/admit.ts'
import { signUpHidden } from '../door/hidden-sign-ups.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { acceptablePassword } from '../password/password-policy.ts'

type SignUp = UserFields & { readonly password: string }

/** The columns that the answer has, and the custom fields. */
type AnsweredUser = Pick<User, keyof Static<typeof SignedInUser> | 'fields'>

/** The new user, and a session unless the email has to be verified first. */
type SignedUp = { readonly user: AnsweredUser; readonly admission: Admission | undefined }

/** The unique constraints decide which sign-up gets an email or a username, not a query before. */
export async function signUp(kernel: Kernel, asked: SignUp, context: SignInContext): Promise<SignedUp> {
  const { email_password, hide_registered_emails } = kernel.config.auth
  if (!email_password.enable_signup) throw fail('SIGN_UP_DISABLED')
  kernel.hashQueue.expectRoom()
  const user = newUser(kernel, asked)
  const password = await acceptablePassword(kernel, asked.password)
  if (!hide_registered_emails)
    return signUpOpenly(kernel, { ...user, password: await hashPassword(kernel, password) }, context)
  await signUpHidden(
    kernel,
    { ...user, password: await hashForAddress(kernel, user.email, password) },
    context,
  )
  // The same answer in both cases.
  return { user: asIfAdded(user), admission: undefined }
}

async function signUpOpenly(
  kernel: Kernel,
  { password, ...user }: NewUser & { readonly password: string },
  context: SignInContext,
): Promise<SignedUp> {
  const { email, email_password } = kernel.config.auth
  try {
    return await atomically(kernel, async (kernel) => {
      const added = await addUser(kernel, user, 'email', password)
      const admission = email_password.require_email_verification
        ? undefined
        : await admitNew(kernel, added, context)
      const session = admission && 'session' in admission ? admission.session.id : undefined
      if (email.send_on_sign_up) await requestFirstLink(kernel, added, context, { isSignUp: true, session })
      return { user: added, admission }
    })
  } catch (error) {
    if (isConflict(error, 'user_username_key')) throw fail('USERNAME_IS_ALREADY_TAKEN')
    throw isConflict(error, 'user_email_key') ? fail('USER_ALREADY_EXISTS') : error
  }
}

function admitNew(kernel: Kernel, { id: userId }: User, context: SignInContext): Promise<Admission> {
  const refuse = () => new Error('the user was added in this transaction and is gone')
  return admit(kernel, { way: 'sign-up', shown: ['password'], proof: { userId }, refuse }, context)
}

const asIfAdded = (user: NewUser): AnsweredUser => ({
  ...user,
  fields: user.fields,
  twoFactorEnabled: false,
  isAnonymous: false,
  updatedAt: user.createdAt,
})
