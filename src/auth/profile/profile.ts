import { isLastAdmin } from '#identity/roles.ts'
import { issueTicket, redeemTicket } from '#identity/tickets.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { deleteUser, type User, type UserChange, updateUser } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import { type Kernel, tell } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { actAsCaller, type Caller } from '../access.ts'
import { fail } from '../errors.ts'
import { expectFresh, isFresh } from '../fresh.ts'
import { mails } from '../mails.ts'
import { checkPassword } from '../password/password.ts'
import { authUrl } from '../urls.ts'
import { acceptableImage, acceptableName } from '../user-fields.ts'

export type ProfileChange = {
  readonly name?: string
  readonly image?: string | null
  readonly username?: string
  readonly displayUsername?: string
}

/** Only what is named here: an email, a role or a ban never comes this way. */
export async function changeProfile(kernel: Kernel, caller: Caller, asked: ProfileChange): Promise<void> {
  try {
    await actAsCaller(kernel, caller, async (kernel, user) => {
      const change = changeOf(asked, user)
      if (Object.keys(change).length === 0) throw fail('NO_FIELDS_TO_UPDATE')
      await updateUser(kernel.db, user.id, change, kernel.now())
    })
  } catch (error) {
    throw isConflict(error, 'user_username_key') ? fail('USERNAME_IS_ALREADY_TAKEN') : error
  }
  await kernel.coherence.settle()
}

const changeOf = (asked: ProfileChange, { username }: User): UserChange => ({
  ...(asked.name === undefined ? {} : { name: acceptableName(asked.name) }),
  ...(asked.image === undefined ? {} : { image: acceptableImage(asked.image) }),
  ...usernameChange(asked, username),
})

/** The display form alone may change its spelling, or give a first username. */
function usernameChange({ username, displayUsername }: ProfileChange, current: string | null): UserChange {
  const handle = username ?? current ?? displayUsername
  if (handle === undefined || (username === undefined && displayUsername === undefined)) return {}
  const found = usernameFrom(handle, displayUsername ?? handle)
  if (found === undefined) throw fail('INVALID_USERNAME')
  return found
}

/** Life of the link that deletes an account, milliseconds. */
const DELETE_LIFE = 86_400_000

export type DeleteAccount = {
  readonly password?: string | undefined
  readonly token?: string | undefined
  readonly callbackURL?: string | undefined
}

/** Deletes the account on a proof of who asks: password, link, or a fresh session. Without one a link is mailed. */
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
  if (asked.password === undefined && !isFresh(kernel, caller.session)) {
    await mailDeletion(kernel, caller, asked.callbackURL)
    return 'mailed'
  }
  const proven = asked.password === undefined ? caller : await checkPassword(kernel, caller, asked.password)
  await actAsCaller(kernel, proven, async (kernel, user) => {
    if (proven.password === undefined) expectFresh(kernel, caller.session)
    await removeUser(kernel, user)
  })
  await kernel.coherence.settle()
  return 'deleted'
}

/** The link works in a session of the same user only: whoever finds the mail alone deletes nothing. */
export async function deleteByLink(kernel: Kernel, caller: Caller, token: string): Promise<void> {
  if (!kernel.config.auth.delete_user.enabled) throw fail('DELETE_USER_DISABLED')
  await actAsCaller(kernel, caller, async (kernel, user) => {
    const ticket = await redeemTicket(kernel, user, ['delete-user'], token)
    if (ticket === undefined || ticket.expired) throw fail('INVALID_RESET_TOKEN')
    await removeUser(kernel, user)
  })
  await kernel.coherence.settle()
}

async function mailDeletion(kernel: Kernel, caller: Caller, callbackURL: string | undefined): Promise<void> {
  if (!(await kernel.limits.allows('mail_recipient', caller.user.email))) return
  await actAsCaller(kernel, caller, async (kernel, user) => {
    const token = await issueTicket(kernel, 'delete-user', {
      userId: user.id,
      sessionId: caller.session.id,
      address: user.email,
      life: DELETE_LIFE,
      payload: {},
    })
    const url = authUrl(kernel, '/delete-user/callback', { token, callbackURL })
    await sendMail(kernel, mails.deleteUser(user, url, DELETE_LIFE))
  })
}

async function removeUser(kernel: Kernel, user: User): Promise<void> {
  if (await isLastAdmin(kernel.db, user)) throw fail('LAST_ADMIN')
  await deleteUser(kernel.db, user.id)
  tell(kernel, 'auth_user_deleted', { userId: user.id })
}
