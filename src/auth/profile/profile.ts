import { act } from '#identity/act.ts'
import { fieldsOf } from '#identity/custom-fields.ts'
import { tellChange } from '#identity/tell.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { type User, type UserChange, updateUser } from '#identity/users.ts'
import { changedFields } from '#kernel/audit/changed-fields.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { acceptableFields, type By, explainingTakenField, fieldsChange } from '../custom-fields/acceptable.ts'
import { bySession, type Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { acceptableImage, acceptableName } from '../user-fields.ts'

export type ProfileChange = {
  readonly name?: string
  readonly image?: string | null
  readonly username?: string
  readonly displayUsername?: string
}

/** Changes the fields of `ProfileChange`, and custom ones beside them, and no others: never an email, a role or a ban. */
export async function changeProfile(kernel: Kernel, caller: Caller, asked: ProfileChange): Promise<void> {
  const isOfUsername = asked.username !== undefined || asked.displayUsername !== undefined
  const isOfUser = isOfUsername || Object.keys(acceptableFields(kernel, asked)).length > 0
  if (isOfUser && caller.session.impersonatedBy !== null) throw fail('NOT_WHILE_IMPERSONATING')
  try {
    await act(kernel, bySession(caller), async (kernel, { user }) => {
      const change = changeOf(kernel, asked, user)
      if (Object.keys(change).length === 0) throw fail('NO_FIELDS_TO_UPDATE')
      await applyChange(kernel, user, change)
    })
  } catch (error) {
    throw isConflict(error, 'user_username_key') ? fail('USERNAME_IS_ALREADY_TAKEN') : error
  }
}

/** For a user whose row is locked. */
export async function applyChange(kernel: Kernel, user: User, change: UserChange): Promise<User> {
  const update = () => updateUser(kernel.db, user.id, change, kernel.now())
  const changed = (await explainingTakenField(update)) ?? user
  const { fields: custom, ...columns } = change
  const fields = [
    ...changedFields(user, changed, columns),
    ...(custom === undefined ? [] : changedFields(fieldsOf(user), fieldsOf(changed), allOf(user, changed))),
  ]
  await tellChange(kernel, 'user.updated', fields, { targetId: user.id, details: { fields } })
  return changed
}

/** The custom fields of both versions. */
const allOf = (user: User, changed: User) => ({ ...fieldsOf(user), ...fieldsOf(changed) })

/** The columns to change; throws when a field is not valid. */
export const changeOf = (kernel: Kernel, asked: ProfileChange, user: User, by: By = 'user'): UserChange => ({
  ...(asked.name === undefined ? {} : { name: acceptableName(asked.name) }),
  ...(asked.image === undefined ? {} : { image: acceptableImage(asked.image) }),
  ...usernameChange(asked, user.username),
  ...fieldsChange(kernel, asked, user, by),
})

/** Given alone, the display form changes the spelling of the username, or is the first one. */
function usernameChange({ username, displayUsername }: ProfileChange, current: string | null): UserChange {
  const handle = username ?? current ?? displayUsername
  if (handle === undefined || (username === undefined && displayUsername === undefined)) return {}
  const found = usernameFrom(handle, displayUsername ?? handle)
  if (found === undefined) throw fail('INVALID_USERNAME')
  return found
}
