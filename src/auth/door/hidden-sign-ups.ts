import { act } from '#identity/act.ts'
import { uniqueOf } from '#identity/custom-fields.ts'
import { insertHiddenSignUp } from '#identity/hidden-sign-ups.ts'
import { tell } from '#identity/tell.ts'
import { lockUserWithEmail, type NewUser, type User } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { explainingTakenField } from '../custom-fields/acceptable.ts'
import { fail } from '../errors.ts'
import { beforeSignUp } from '../hooks/sign-up.ts'
import { addUser } from './add-user.ts'
import { requestFirstLink } from './admit.ts'
import type { SignInContext } from './sign-in-context.ts'

type WithPassword = NewUser & { readonly password: string }

/**
 * Sign-up that does not show whether an address has an account (decision 25). When it has one, the account stays as it is, its owner
 * gets a mail, and sign-in and usernames behave from then on as if there were a new account. Both cases run the same statements,
 * so that the time of the answer does not show the difference.
 */
export async function signUpHidden(
  kernel: Kernel,
  asked: WithPassword,
  context: SignInContext,
): Promise<void> {
  try {
    await addEither(kernel, asked, context)
  } catch (error) {
    const isTaken = ['user_username_key', 'hidden_sign_up_username_key'].some((key) => isConflict(error, key))
    if (isTaken) throw fail('USERNAME_IS_ALREADY_TAKEN')
    // Another sign-up has taken the address in the meantime.
    if (!isConflict(error, 'user_email_key')) throw error
    await addEither(kernel, asked, context)
  }
}

const addEither = (kernel: Kernel, asked: WithPassword, context: SignInContext): Promise<void> =>
  atomically(kernel, async (kernel) => {
    const { password, ...user } = asked
    const owner = await lockUserWithEmail(kernel, user.email)
    if (owner === undefined) await addUser(kernel, user, 'email', password)
    else await addHidden(kernel, owner, asked)
    await requestFirstLink(kernel, asked, context, { isSignUp: true })
  })

/** The owner of the address is the target: a stranger has no account to act as. */
async function addHidden(kernel: Kernel, owner: User, asked: WithPassword): Promise<void> {
  const consent = beforeSignUp(kernel, asked, { method: 'email' })
  const fields = uniqueOf(kernel.config, consent.fields)
  await explainingTakenField(() => insertHiddenSignUp(kernel.db, owner, { ...asked, fields }))
  consent.expectConsent()
  await tell(kernel, 'user.sign_up_hidden', { targetId: owner.id })
  // A new user has an event, if a webhook wants it.
  await kernel.events.rehearse(kernel, 'auth_user_created', { user_id: owner.id })
}

/** Sign-in with the password of a hidden sign-up: answers as `admit` does for an unproven address, in the same time and with a mail. */
export async function refuseHidden(kernel: Kernel, userId: string, context: SignInContext): Promise<never> {
  const refusal = () => fail('EMAIL_NOT_VERIFIED')
  const owner = await act(kernel, { userId, refuse: refusal }, async (_kernel, { user }) => user)
  const { email } = owner
  // With the id of no user, the queue mails the owner a notice, or a link that does not carry the mark of this browser.
  const nobody = uuidv7(kernel.now(), kernel.random)
  await requestFirstLink(kernel, { id: nobody, email }, context)
  throw refusal()
}
