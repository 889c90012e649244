import { act } from '#identity/act.ts'
import { hashPassword } from '#identity/passwords.ts'
import { isAdmin } from '#identity/permissions.ts'
import { lockAdmins } from '#identity/roles.ts'
import { deleteTickets } from '#identity/tickets.ts'
import { hasProvenEmail, type User, type UserChange, updateUser, withoutExpiredBan } from '#identity/users.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { endAnonymity } from '../anonymous/upgrade.ts'
import { fieldsOfKnown } from '../custom-fields/acceptable.ts'
import type { Caller } from '../door/access.ts'
import { addUser, newUser } from '../door/add-user.ts'
import { fail } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import { MAILS } from '../mailing/texts.ts'
import { acceptablePassword } from '../password/password-policy.ts'
import { removeUser } from '../profile/delete-account.ts'
import { applyChange, changeOf, type ProfileChange } from '../profile/profile.ts'
import { acceptableEmail } from '../user-fields.ts'
import {
  actOnUser,
  byAdmin,
  expectMayHandOver,
  expectPermission,
  expectShownByOneself,
} from './act-on-user.ts'
import { TO } from './permissions.ts'
import { acceptableRole, expectToCover } from './roles.ts'

/** The fields of a user that an admin may set. */
type UserData = ProfileChange & { readonly email?: string; readonly emailVerified?: boolean }

type CreateUser = {
  readonly email: string
  readonly name: string
  readonly password: string
  readonly role?: string | readonly string[]
  readonly data?: UserData
}

export async function createUser(kernel: Kernel, caller: Caller, asked: CreateUser): Promise<User> {
  const { email, name, data = {} } = asked
  const added = newUser(kernel, { ...data, email, name }, 'operator')
  const user = { ...added, emailVerified: data.emailVerified === true }
  const role = asked.role === undefined ? undefined : acceptableRole(kernel, asked.role)
  const password = await hashPassword(kernel, await acceptablePassword(kernel, asked.password))
  return explainingConflicts(() =>
    act(kernel, byAdmin(caller, TO.CREATE), async (kernel, { user: admin }) => {
      if (changesAddress(data)) expectPermission(kernel, admin, TO.SET_EMAIL)
      if (role === undefined) return addUser(kernel, user, 'by operator', password)
      expectPermission(kernel, admin, TO.SET_ROLE)
      expectToCover(kernel, admin, { id: user.id, role })
      if (isAdmin(kernel, { id: user.id, role })) await lockAdmins(kernel.db)
      return addUser(kernel, { ...user, role }, 'by operator', password)
    }),
  )
}

/**
 * A new address invalidates every open link. An admin who calls an address verified lets in where that is required. It proves nothing and
 * removes nothing: who has opened the account is not known (decision 15).
 */
export function changeUser(kernel: Kernel, caller: Caller, userId: string, asked: UserData): Promise<User> {
  return explainingConflicts(() =>
    actOnUser(kernel, caller, { permission: TO.UPDATE, userId }, async (kernel, act) => {
      const { admin, user } = act
      if (changesAddress(asked)) {
        expectPermission(kernel, admin, TO.SET_EMAIL)
        expectMayHandOver(kernel, act)
        // Judged as the known user who comes of it: the settings may name the id as an admin's.
        if (user.isAnonymous) expectToCover(kernel, admin, { id: user.id, role: user.role })
      }
      const change = changeFor(kernel, asked, user)
      if (Object.keys(change).length === 0) throw fail('NO_FIELDS_TO_UPDATE')
      const demanding = hasProvenEmail(user) ? 'changeOwnEmail' : 'changeUnprovenEmail'
      if (change.email !== undefined) await expectShownByOneself(kernel, caller, act, demanding)
      const changed = await applyChange(kernel, user, change)
      if (user.isAnonymous && !changed.isAnonymous) await endAnonymity(kernel, user, 'admin', 'by operator')
      // After the change, which may be refused: a notice that is not sent would count all the same.
      if (change.email !== undefined) await leaveOldAddress(kernel, user, change.email)
      await markForProofs(kernel, user, change)
      return withoutExpiredBan(changed, kernel.now())
    }),
  )
}

/** With an address an anonymous user becomes a known one, who has the custom fields that every new user has. */
function changeFor(kernel: Kernel, asked: UserData, user: User): UserChange {
  const change = { ...changeOf(kernel, asked, user, 'operator'), ...addressChange(asked, user) }
  const isUpgrade = user.isAnonymous && change.isAnonymous === false
  return isUpgrade ? { ...change, ...fieldsOfKnown(kernel, { ...user, ...change }) } : change
}

const changesAddress = ({ email, emailVerified }: UserData): boolean =>
  email !== undefined || emailVerified !== undefined

/** `noticeTo` sends none to an address that was not proven. */
async function leaveOldAddress(kernel: Kernel, user: User, email: string): Promise<void> {
  await deleteTickets(kernel.db, user)
  await noticeTo(kernel, user, MAILS.emailChangedByAdmin(user, email))
}

/** The columns that later proofs of the address are judged by. */
async function markForProofs(
  kernel: Kernel,
  user: User,
  { email, emailVerified }: UserChange,
): Promise<void> {
  const isNew = email !== undefined
  const marks = {
    // The factor is the owner's, and no first proof of the new address removes it.
    ...(isNew && hasProvenEmail(user) && { keepsFactor: true }),
    ...(emailVerified === true && (isNew || !user.emailVerified) && { verifiedByAdmin: true }),
  }
  if (Object.keys(marks).length > 0) await updateUser(kernel.db, user.id, marks, kernel.now())
}

function addressChange({ email, emailVerified }: UserData, user: User): UserChange {
  const given = email === undefined ? undefined : acceptableEmail(email)
  if (user.isAnonymous && given === undefined && emailVerified === true) throw fail('USER_IS_ANONYMOUS')
  if (given === undefined || given === user.email) return emailVerified === undefined ? {} : { emailVerified }
  return { email: given, emailVerified: emailVerified ?? false, isAnonymous: false }
}

/** With sessions, tickets, memberships and all else that belongs to the user. */
export function removeUserAsAdmin(kernel: Kernel, caller: Caller, userId: string): Promise<void> {
  return actOnUser(kernel, caller, { permission: TO.DELETE, userId }, (kernel, { admin, user }) => {
    if (admin.id === user.id) throw fail('YOU_CANNOT_REMOVE_YOURSELF')
    return removeUser(kernel, user)
  })
}

/** Addresses and usernames are unique. */
async function explainingConflicts<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isConflict(error, 'user_username_key')) throw fail('USERNAME_IS_ALREADY_TAKEN')
    throw isConflict(error, 'user_email_key') ? fail('USER_ALREADY_EXISTS') : error
  }
}
