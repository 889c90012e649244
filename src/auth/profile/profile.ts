import { actOnTicket, stateAgain } from '#identity/proof.ts'
import { isLastAdmin } from '#identity/roles.ts'
import { deleteTickets, redeemTicket } from '#identity/tickets.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { deleteUser, type User, type UserChange, updateUser } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import { atomically, type Kernel, tell } from '#kernel/kernel.ts'
import { actAsCaller, type Caller } from '../access.ts'
import { fail } from '../errors.ts'
import { mailLink } from '../mail-links.ts'
import { openLink } from '../mail-tickets.ts'
import { checkPassword, checkPasswordOf } from '../password/password.ts'
import { expectFresh, isFresh } from '../session-freshness.ts'
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

const DELETE = ['delete-user'] as const
const invalidToken = () => fail('INVALID_RESET_TOKEN')

/** The link works in a session of the same user only: the mail alone deletes nothing. */
export async function deleteByLink(kernel: Kernel, caller: Caller, token: string): Promise<void> {
  if (!kernel.config.auth.delete_user.enabled) throw fail('DELETE_USER_DISABLED')
  await actAsCaller(kernel, caller, async (kernel, user) => {
    const ticket = await redeemTicket(kernel, user, DELETE, token)
    if (ticket === undefined || ticket.expired) throw invalidToken()
    await removeUser(kernel, user)
  })
  await kernel.coherence.settle()
}

/** The same without a session, in another browser for instance: the password stands for it. */
export async function deleteByLinkAndPassword(kernel: Kernel, token: string, shown: string): Promise<void> {
  if (!kernel.config.auth.delete_user.enabled) throw fail('DELETE_USER_DISABLED')
  const link = { purposes: DELETE, token }
  const { user } = await openLink(kernel, DELETE, token)
  const password = await checkPasswordOf(kernel, user, shown)
  await actOnTicket(kernel, link, invalidToken, async (kernel, user, { expired }) => {
    if (expired) throw invalidToken()
    if ((await stateAgain(kernel, { userId: user.id, password })) === undefined)
      throw fail('INVALID_PASSWORD')
    await removeUser(kernel, user)
  })
  await kernel.coherence.settle()
}

const mailDeletion = (kernel: Kernel, caller: Caller, callbackURL: string | undefined): Promise<void> =>
  actAsCaller(kernel, caller, (kernel, user) =>
    mailLink(kernel, 'delete-user', user, {
      sessionId: caller.session.id,
      address: user.email,
      payload: {},
      callbackURL,
    }),
  )

/** By an operator, who proves nothing here. False when there is no such user. */
export async function deleteByOperator(kernel: Kernel, userId: string): Promise<boolean> {
  const isThere = await atomically(kernel, async (kernel) => {
    const user = await stateAgain(kernel, { userId })
    if (user !== undefined) await removeUser(kernel, user)
    return user !== undefined
  })
  await kernel.coherence.settle()
  return isThere
}

async function removeUser(kernel: Kernel, user: User): Promise<void> {
  if (await isLastAdmin(kernel.db, user)) throw fail('LAST_ADMIN')
  await deleteTickets(kernel.db, user)
  await deleteUser(kernel.db, user.id)
  tell(kernel, 'auth_user_deleted', { userId: user.id })
}
