import { deleteAccounts, requirePasswordChange, upsertPassword } from '#identity/accounts.ts'
import { hashPassword } from '#identity/passwords.ts'
import { stateAgain } from '#identity/proof.ts'
import { deleteUserSessions } from '#identity/sessions.ts'
import { deleteTickets, type Ticket, type TicketPurpose } from '#identity/tickets.ts'
import { type User, updateUser } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { uuidv7 } from '#kernel/random.ts'
import { type Caller, proofOf } from '../access.ts'
import { fail } from '../errors.ts'
import { mails } from '../mails.ts'
import { checkPasswordOf } from '../password/password.ts'
import { acceptablePassword } from '../password-policy.ts'
import type { SignInContext } from '../sign-in-context.ts'
import { browserMark } from './verification.ts'

/** Where the click on a link comes from. */
export type Click = {
  readonly caller: Caller | undefined
  readonly browser: string | undefined
  readonly context: SignInContext
}

/** What a person fills in on the page, or an application sends in its place. */
export type Filled = { readonly password?: string | undefined; readonly newPassword?: string | undefined }

/** What is known besides the click: nothing, because no page was shown; nothing yet; a password, by its stored hash. */
export type Shown =
  | { readonly by: 'link' }
  | { readonly by: 'page' }
  | { readonly by: 'password'; readonly stored: string }
  | { readonly by: 'new password'; readonly hash: string }

/** Checks what was filled in, before anything is locked: a hash takes its time. */
export async function shownBy(kernel: Kernel, user: User, filled: Filled): Promise<Shown> {
  const { password = '', newPassword = '' } = filled
  if (newPassword !== '') {
    return {
      by: 'new password',
      hash: await hashPassword(kernel, await acceptablePassword(kernel, newPassword)),
    }
  }
  if (password === '') return { by: 'page' }
  return { by: 'password', stored: await checkPasswordOf(kernel, user, password) }
}

/** The first proof of the address that the account has had from the beginning. */
export async function proveEmail(
  kernel: Kernel,
  user: User,
  click: OpenClick,
  mark: string | undefined,
): Promise<User> {
  if (user.emailVerified) {
    // This link is for the first proof, and not a second way to reset a password.
    if (click.shown.by === 'new password') throw fail('INVALID_TOKEN')
    return user
  }
  return prove(kernel, user, { ...click, mark, email: user.email })
}

/** The same of an address that takes the place of another: the account may be that of a stranger who has named it. */
export const proveNewEmail = (kernel: Kernel, user: User, click: OpenClick, email: string): Promise<User> =>
  prove(kernel, user, { ...click, mark: undefined, email })

type OpenClick = Omit<Click, 'context'> & { readonly shown: Shown }

/**
 * The first proof of an address (decision 15). Before it, another person may have opened the account with this address, or given
 * it to their own. So everything stays only when the click comes from the person who set the password; else what was added
 * before goes. A password is never deleted: it is replaced by one that is chosen here, or has to be changed before it signs in again.
 */
async function prove(
  kernel: Kernel,
  user: User,
  {
    browser,
    mark,
    email,
    ...click
  }: OpenClick & { readonly mark: string | undefined; readonly email: string },
): Promise<User> {
  const { shown } = click
  const isMarked = browser !== undefined && browserMark(browser) === mark
  const isOwner = shown.by !== 'new password' && (isMarked || (await hasShown(kernel, user, click)))
  if (!isOwner && shown.by === 'page') throw fail('PASSWORD_REQUIRED')
  if (!isOwner && shown.by === 'password') throw fail('INVALID_PASSWORD')
  const proven = (await updateUser(kernel.db, user.id, { email, emailVerified: true }, kernel.now())) ?? user
  if (!isOwner) {
    await removeWhatOthersAdded(kernel, proven)
    if (shown.by === 'new password') await choosePassword(kernel, proven, shown.hash)
    else await requirePasswordChange(kernel.db, user.id, kernel.now())
  }
  return proven
}

/** As far as it can be told before anything is locked: a session of this user, or the browser that signed up. */
export const isOwnClick = (
  user: User,
  { payload }: Ticket<TicketPurpose>,
  { caller, browser }: Click,
): boolean =>
  caller?.user.id === user.id ||
  ('browser' in payload && browser !== undefined && browserMark(browser) === payload.browser)

/** A session of this user, or their password: stated again now that the user is locked. */
async function hasShown(
  kernel: Kernel,
  { id: userId }: User,
  { caller, shown }: { readonly caller: Caller | undefined; readonly shown: Shown },
): Promise<boolean> {
  if (shown.by === 'password')
    return (await stateAgain(kernel, { userId, password: shown.stored })) !== undefined
  if (caller?.user.id !== userId) return false
  return (await stateAgain(kernel, proofOf(caller))) !== undefined
}

/** Sessions, linked accounts and tickets. */
export async function removeWhatOthersAdded(kernel: Kernel, user: User): Promise<void> {
  await deleteUserSessions(kernel.db, user.id)
  await deleteAccounts(kernel.db, user.id, { keepPassword: true })
  await deleteTickets(kernel.db, user)
}

async function choosePassword(kernel: Kernel, user: User, password: string): Promise<void> {
  const now = kernel.now()
  await upsertPassword(kernel.db, { id: uuidv7(now, kernel.random), userId: user.id, password, now })
  await sendMail(kernel, mails.passwordChanged(user))
}
