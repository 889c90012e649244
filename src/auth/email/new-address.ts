import { lockProvenUser } from '#identity/proof.ts'
import { deleteTickets } from '#identity/tickets.ts'
import { type User, updateUser } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { addFirstPassword, endAnonymity } from '../anonymous/upgrade.ts'
import { fieldsOfKnown } from '../custom-fields/acceptable.ts'
import { proofOf } from '../door/access.ts'
import { type Admission, admit } from '../door/admit.ts'
import { fail } from '../errors.ts'
import { type EmailChange, type ProvingClick, proveNewEmail } from './first-proof.ts'

/** The user after the link has acted, and a session if it has started one. */
export type FollowedLink = { readonly user: User; readonly admission: Admission | undefined }

/**
 * Completes a change of address. It is the first proof of the new address, and ends every other link of the user. An anonymous user is a known
 * one from then on, and gets a new session in place of the one that has clicked.
 */
export async function changeNow(
  kernel: Kernel,
  user: User,
  click: ProvingClick,
  given: EmailChange,
): Promise<FollowedLink> {
  try {
    if (user.isAnonymous) return await upgradeNow(kernel, user, click, given)
    const changed = await proveNewEmail(kernel, user, click, given)
    await deleteTickets(kernel.db, user)
    return { user: changed, admission: undefined }
  } catch (error) {
    // Another account has taken it meanwhile.
    throw isConflict(error, 'user_email_key') ? invalidToken() : error
  }
}

const invalidToken = () => fail('INVALID_TOKEN')

async function upgradeNow(
  kernel: Kernel,
  user: User,
  click: ProvingClick,
  given: EmailChange,
): Promise<FollowedLink> {
  const { caller } = click
  const { password } = given.payload
  const isInSession =
    caller?.user.id === user.id && (await lockProvenUser(kernel, proofOf(caller))) !== undefined
  const fields = fieldsOfKnown(kernel, user)
  if (fields.fields !== undefined) await updateUser(kernel.db, user.id, fields, kernel.now())
  // Before the proof, which decides whether it stays usable.
  if (password !== undefined) await addFirstPassword(kernel, user, password)
  const changed = await proveNewEmail(kernel, user, click, given)
  await endAnonymity(kernel, user, 'email', { known: changed, method: 'email' })
  const proof = { userId: user.id }
  const entrance = { way: 'mail', shown: ['mail'], proof, refuse: invalidToken } as const
  return { user: changed, admission: isInSession ? await admit(kernel, entrance, click.context) : undefined }
}
