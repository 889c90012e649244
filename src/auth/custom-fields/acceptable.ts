import {
  type CustomFields,
  changeFields,
  type FieldChange,
  fieldsIn,
  fieldsOf,
  newFields,
  type RefuseField,
  takenField,
} from '#identity/custom-fields.ts'
import type { User, UserChange } from '#identity/users.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

/** The sender of fields. Users may not set those with `input: false`. */
export type By = 'user' | 'operator'

const refuse: RefuseField = (problem, message) => {
  if (problem === 'missing') throw fail('MISSING_FIELD', { message })
  throw problem === 'closed' ? fail('FIELD_NOT_ALLOWED', { message }) : edge('validation_error', { message })
}

/** The custom fields among the members, as they are stored; throws when one is not valid. */
export const acceptableFields = ({ config }: Kernel, asked: object, by: By = 'user'): FieldChange =>
  fieldsIn(config, asked, { by, refuse })

/** The custom fields of a new user; throws when a required one is missing, too. */
export const fieldsOfNew = (kernel: Kernel, asked: object, by: By = 'user'): CustomFields | null =>
  newFields(kernel.config, acceptableFields(kernel, asked, by), refuse)

/** The same of an anonymous user who becomes a known one, and may have some already. */
export function fieldsOfKnown(kernel: Kernel, user: User): Pick<UserChange, 'fields'> {
  const fields = newFields(kernel.config, fieldsOf(user), refuse)
  return fields === null ? {} : { fields: { ...fieldsOf(user), ...fields } }
}

export function fieldsChange(kernel: Kernel, asked: object, user: User, by: By): Pick<UserChange, 'fields'> {
  const change = acceptableFields(kernel, asked, by)
  return Object.keys(change).length === 0 ? {} : { fields: changeFields(user, change, refuse) }
}

/** Translates a violation of a unique field. */
export async function explainingTakenField<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    const field = takenField(error)
    if (field === undefined) throw error
    throw fail('FIELD_VALUE_IS_ALREADY_TAKEN', {
      message: `Another user has this ${field}`,
      details: { field },
    })
  }
}
