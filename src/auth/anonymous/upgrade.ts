import { upsertPassword } from '#identity/accounts.ts'
import { fieldsOf } from '#identity/custom-fields.ts'
import { deleteKnownDevices } from '#identity/known-devices.ts'
import { isAdmin } from '#identity/permissions.ts'
import { lockAdmins } from '#identity/roles.ts'
import { deleteUserSessions } from '#identity/sessions.ts'
import { tell } from '#identity/tell.ts'
import { deleteTickets } from '#identity/tickets.ts'
import { type User, type UserChange, updateUser } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { explainingTakenField, fieldsChange, fieldsOfKnown } from '../custom-fields/acceptable.ts'
import { fail } from '../errors.ts'
import { beforeSignUp, type SignUpMethod } from '../hooks/sign-up.ts'

type FirstWayIn = {
  readonly by: 'passkey' | 'provider'
  readonly method: SignUpMethod
  /** The address and the name of a provider's account. */
  readonly change?: UserChange
}

/**
 * Ends the anonymity of a user whose row is locked and who has just got the first way in. With a policy that asks for a verified address,
 * the change has to bring one: otherwise the user could never sign in.
 */
export async function upgrade(
  kernel: Kernel,
  user: User,
  { by, method, change = {} }: FirstWayIn,
): Promise<void> {
  const { require_email_verification } = kernel.config.auth.email_password
  if (require_email_verification && change.emailVerified !== true) throw fail('USER_IS_ANONYMOUS')
  const known = { ...change, ...fieldsOfKnown(kernel, user), isAnonymous: false }
  const changed = (await updateUser(kernel.db, user.id, known, kernel.now())) ?? user
  await endAnonymity(kernel, user, by, { known: changed, method })
}

/** As a newcomer has them; an empty name is none. Custom fields are beside them. */
type Given = { readonly email: string; readonly name: string; readonly image?: string | null }

/**
 * Gives the address to an anonymous user, whose row is locked, and who has shown its mailbox in the own session. Throws a unique violation
 * (`user_email_key`).
 */
export async function upgradeByMail(
  kernel: Kernel,
  user: User,
  given: Given,
  method: 'magic_link' | 'email_otp',
): Promise<User> {
  const { email, name, image } = given
  const now = kernel.now()
  const asked = fieldsChange(kernel, given, user, 'user')
  const change = {
    ...{ email, emailVerified: true, emailProvenAt: now, isAnonymous: false },
    ...asked,
    ...fieldsOfKnown(kernel, { ...user, ...asked }),
    ...(name !== '' && { name }),
    ...(image != null && { image }),
  }
  const known = (await explainingTakenField(() => updateUser(kernel.db, user.id, change, now))) ?? user
  await tell(kernel, 'email.changed', { targetId: user.id, details: { removedWhatOthersAdded: false } })
  await endAnonymity(kernel, user, 'email', { known, method })
  // Those of the new address, too.
  await deleteTickets(kernel.db, known)
  return known
}

/**
 * Refuses where nobody opens an account in this way: policies and organizations trust known users, and an anonymous one is anybody. Accounts of
 * providers have a setting of their own (`maySignUp`).
 */
export function expectOpenSignUp({ config: { auth } }: Kernel, by: 'passkey' | 'email'): void {
  const byMail = [auth.magic_link, auth.email_otp].some(({ enabled, sign_up }) => enabled && sign_up)
  const isOpen = auth.email_password.enable_signup || (by === 'email' && byMail)
  if (!isOpen) throw fail('SIGN_UP_DISABLED')
}

/** The password that an anonymous user has signed up with, by its hash. It is as old as the account, as that of any other sign-up. */
export const addFirstPassword = (
  { db, now, random }: Kernel,
  { id: userId }: User,
  password: string,
): Promise<void> => upsertPassword(db, { id: uuidv7(now(), random), userId, password, now: now() })

/**
 * Ends every session, link and known device, in the transaction that sets `isAnonymous` to false. Until now a session was all that it took to
 * be this user, so another may hold one, or may have put it into this browser. Whoever has shown the first way in gets a new one by `admit`.
 * Becoming known counts as a sign-up, so that hooks are asked, unless an operator does it.
 */
export async function endAnonymity(
  kernel: Kernel,
  user: User,
  by: string,
  signUp: SignUp | 'by operator',
): Promise<void> {
  // `auth.admin.user_ids` may name the user.
  if (isAdmin(kernel, { ...user, isAnonymous: false })) await lockAdmins(kernel.db)
  if (signUp !== 'by operator') await askHooks(kernel, signUp)
  const sessionsEnded = await deleteUserSessions(kernel.db, user.id)
  await deleteTickets(kernel.db, user)
  await deleteKnownDevices(kernel, user.id)
  await tell(kernel, 'user.upgraded', { targetId: user.id, details: { by, sessionsEnded } })
}

type SignUp = { readonly known: User; readonly method: SignUpMethod }

async function askHooks(kernel: Kernel, { known, method }: SignUp): Promise<void> {
  const given = fieldsOf(known)
  const newcomer = { ...known, fields: given }
  const { fields, expectConsent } = beforeSignUp(kernel, newcomer, { method, userId: known.id })
  if (fields !== null && fields !== given)
    await explainingTakenField(() => updateUser(kernel.db, known.id, { fields }, kernel.now()))
  expectConsent()
}
