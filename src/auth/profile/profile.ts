import { act } from '#identity/act.ts'
import { tellChange } from '#identity/tell.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { type User, type UserChange, updateUser } from '#identity/users.ts'
import { changedFields } from '#kernel/audit/changed-fields.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bySession, type Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { acceptableImage, acceptableName } from '../user-fields.ts'

export type ProfileChange = {
  readonly name?: string
  readonly image?: string | null
  readonly username?: string
  readonly displayUsername?: string
}

/** Changes the fields of `ProfileChange` and no others: never an email, a role or a ban. */
export async function changeProfile(kernel: Kernel, caller: Caller, asked: ProfileChange): Promise<void> {
  const isOfUsername = asked.username !== undefined || asked.displayUsername !== undefined
  if (isOfUsername && caller.session.impersonatedBy !== null) throw fail('NOT_WHILE_IMPERSONATING')
  try {
    await act(kernel, bySession(caller), async (kernel, { user }) => {
      const change = changeOf(asked, user)
      if (Object.keys(change).length === 0) throw fail('NO_FIELDS_TO_UPDATE')
      await applyChange(kernel, user, change)
    })
  } catch (error) {
    throw isConflict(error, 'user_username_key') ? fail('USERNAME_IS_ALREADY_TAKEN') : error
  }
}

/** For a user whose row is locked. */
export async function applyChange(kernel: Kernel, user: User, change: UserChange): Promise<User> {
  const changed = (await updateUser(kernel.db, user.id, change, kernel.now())) ?? user
  const fields = changedFields(user, changed, change)
  await tellChange(kernel, 'user.updated', fields, { targetId: user.id, details: { fields } })
  return changed
}

/** The columns to change; throws when a field is not valid. */
export const changeOf = (asked: ProfileChange, { username }: User): UserChange => ({
  ...(asked.name === undefined ? {} : { name: acceptableName(asked.name) }),
  ...(asked.image === undefined ? {} : { image: acceptableImage(asked.image) }),
  ...usernameChange(asked, username),
})

/** Given alone, the display form changes the spelling of the username, or is the first one. */
function usernameChange({ username, displayUsername }: ProfileChange, current: string | null): UserChange {
  const handle = username ?? current ?? displayUsername
  if (handle === undefined || (username === undefined && displayUsername === undefined)) return {}
  const found = usernameFrom(handle, displayUsername ?? handle)
  if (found === undefined) throw fail('INVALID_USERNAME')
  return found
}
