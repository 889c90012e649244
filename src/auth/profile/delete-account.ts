import { findPassword } from '#identity/accounts.ts'
import { act, actOnTicket, actWithoutProof } from '#identity/act.ts'
import { isPlaceholder } from '#identity/placeholders.ts'
import { lockProvenUser } from '#identity/proof.ts'
import { isLastAdmin } from '#identity/roles.ts'
import { tell } from '#identity/tell.ts'
import { deleteTickets, redeemTicket } from '#identity/tickets.ts'
import { deleteUser, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { forgetMails } from '#kernel/mail/mailer.ts'
import { bySession, type Caller } from '../door/access.ts'
import { expectShown, hasShown } from '../door/demands.ts'
import { fail, LINK_FAILURES } from '../errors.ts'
import type { MailFlow, OpenLink, View } from '../mailing/flow.ts'
import { type LinkClick, sourceOf } from '../mailing/link-click.ts'
import { mailLink, openLink } from '../mailing/links.ts'
import { MAILS } from '../mailing/texts.ts'
import { leaveOrganizations } from '../organization/departure.ts'
import { checkPassword, checkPasswordOf } from '../password/password.ts'

type DeleteAccount = {
  readonly password?: string | undefined
  readonly token?: string | undefined
  readonly callbackURL?: string | undefined
}

/** Deletes the account, given a password, a link's token or a session with a recent proof. Without any of them, mails a link. */
export async function deleteAccount(
  kernel: Kernel,
  caller: Caller,
  asked: DeleteAccount,
): Promise<'deleted' | 'mailed'> {
  if (!kernel.config.auth.delete_user.enabled) throw fail('DELETE_USER_DISABLED')
  if (asked.token !== undefined) {
    await deleteByLink(kernel, caller, asked.token)
    return 'deleted'
  }
  const proven = asked.password === undefined ? caller : await checkPassword(kernel, caller, asked.password)
  return act(kernel, bySession(proven), async (kernel, { user }) => {
    // A password that this session has set is no proof (auth.md 2).
    const inBody = proven.password === undefined ? [] : (['password'] as const)
    // No mail reaches who has no address.
    if (isPlaceholder(user.email)) await expectShown(kernel, caller.session, 'deleteUser', inBody)
    const isProven = await hasShown(kernel, caller.session, 'deleteUser', inBody)
    await (isProven ? removeUser(kernel, user) : mailDeletion(kernel, caller, user, asked.callbackURL))
    return isProven ? 'deleted' : 'mailed'
  })
}

const DELETE = ['delete-user'] as const
const invalidToken = () => fail('INVALID_RESET_TOKEN')

/** The link works in a session of the same user only, so that the mail alone deletes nothing. */
export async function deleteByLink(kernel: Kernel, caller: Caller, token: string): Promise<void> {
  if (!kernel.config.auth.delete_user.enabled) throw fail('DELETE_USER_DISABLED')
  await act(kernel, bySession(caller), async (kernel, { user }) => {
    const ticket = await redeemTicket(kernel, user, DELETE, token)
    if (ticket === undefined || ticket.expired) throw invalidToken()
    await removeUser(kernel, user)
  })
}

/** The same with the password in place of a session, for instance in another browser. */
async function deleteByLinkAndPassword(
  kernel: Kernel,
  token: string,
  shown: string,
  click: LinkClick,
): Promise<void> {
  if (!kernel.config.auth.delete_user.enabled) throw fail('DELETE_USER_DISABLED')
  const link = { purposes: DELETE, token }
  const { user } = await openLink(kernel, DELETE, token)
  const password = await checkPasswordOf(kernel, user, shown, sourceOf(user, click))
  await actOnTicket(kernel, link, invalidToken, async (kernel, user, { expired }) => {
    if (expired) throw invalidToken()
    if ((await lockProvenUser(kernel, { userId: user.id, password })) === undefined)
      throw fail('INVALID_PASSWORD')
    await removeUser(kernel, user)
  })
}

function mailDeletion(
  kernel: Kernel,
  { session: { id: sessionId } }: Caller,
  user: User,
  callbackURL: string | undefined,
): Promise<void> {
  const ticket = { userId: user.id, sessionId, address: user.email, payload: {} }
  return mailLink(kernel, DELETE_USER, { ticket, recipient: user, callbackURL })
}

/** For an operator, without a proof. False when there is no such user. */
export async function deleteByOperator(kernel: Kernel, userId: string): Promise<boolean> {
  const done = await actWithoutProof(kernel, userId, async (kernel, user) => {
    await removeUser(kernel, user)
    return true
  })
  return done ?? false
}

/** Failures of deleting a user. */
export const REMOVAL_FAILURES = ['LAST_ADMIN', 'SOLE_OWNER_OF_ORGANIZATION']

/** For a user whose row is locked. */
export async function removeUser(kernel: Kernel, user: User): Promise<void> {
  if (await isLastAdmin(kernel, user)) throw fail('LAST_ADMIN')
  await leaveOrganizations(kernel, user)
  await deleteTickets(kernel.db, user)
  await deleteUser(kernel.db, user.id)
  await forgetMails(kernel, user.email)
  await tell(kernel, 'user.deleted', { targetId: user.id })
}

/** Deletes the account. */
export const DELETE_USER: MailFlow<'delete-user'> = {
  purpose: 'delete-user',
  lifetime: () => DAY,
  mail: MAILS.deleteUser,
  endpoint: '/delete-user/callback',
  page: {
    name: 'delete-user',
    setting: 'delete',
    summary: 'Delete an account',
    failures: [
      ...LINK_FAILURES,
      'INVALID_RESET_TOKEN',
      'UNAUTHORIZED',
      'DELETE_USER_DISABLED',
      ...REMOVAL_FAILURES,
    ],
    fields: ['password'],
    askAgain: 'askAgainDelete',
  },
  view: deletionView,
  async act(kernel, { user }, { token, click, values: { password = '' } }) {
    const signedIn = click.caller?.user.id === user.id ? click.caller : undefined
    if (signedIn === undefined && password === '') throw fail('PASSWORD_REQUIRED')
    if (signedIn === undefined) await deleteByLinkAndPassword(kernel, token, password, click)
    else await deleteByLink(kernel, signedIn, token)
    return { title: 'deleteDone', text: 'deleteDoneText', isSignedOut: signedIn !== undefined }
  },
}

const DAY = 86_400_000

async function deletionView(
  kernel: Kernel,
  { user }: OpenLink<'delete-user'>,
  { caller }: LinkClick,
): Promise<View> {
  const [title, button] = ['deleteTitle', 'deleteButton'] as const
  if (caller?.user.id === user.id)
    return { title, paragraphs: ['deleteText'], forms: [{ fields: [], button }] }
  if ((await findPassword(kernel.db, user.id)) === undefined)
    return { title, paragraphs: ['deleteText', 'deleteSignInText'], forms: [] }
  return {
    title,
    paragraphs: ['deleteText', 'deletePasswordText'],
    forms: [{ fields: ['password'], button }],
  }
}
