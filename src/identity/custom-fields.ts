import type { Config } from '#kernel/config/config.ts'
import { type FieldValue, fieldRule, fieldValue, fieldValueOfText } from '#kernel/field-values.ts'

/** The fields of a user that `auth.user.fields` adds, by name. A field without a value is absent. */
export type CustomFields = Readonly<Record<string, FieldValue>>

/** Null removes the value. */
export type FieldChange = Readonly<Record<string, FieldValue | null>>

/** `closed`: the sender may not set it. */
export type RefuseField = (problem: 'invalid' | 'closed' | 'missing', message: string) => never

/** Characters of all fields of a user as JSON: sessions in memory have them. */
const FIELDS_MAX = 4_096

/** The column of a user. */
type WithFields = { readonly fields: unknown }

/** The stored fields, also those that the configuration does not have any more. */
export const fieldsOf = ({ fields }: WithFields): CustomFields =>
  // Only this file's values are stored.
  (fields ?? {}) as CustomFields

/** The fields among the members of a body or a record, which may have others. */
export function fieldsIn(
  { auth }: Config,
  given: object,
  { by, refuse }: { readonly by: 'user' | 'operator'; readonly refuse: RefuseField },
): FieldChange {
  const members = Object.entries(auth.user.fields).flatMap(([name, field]) => {
    // An own member, as parsed from JSON.
    const value = Object.hasOwn(given, name) ? (given as Record<string, unknown>)[name] : undefined
    if (value === undefined) return []
    if (by === 'user' && !field.input) return refuse('closed', `${name} is not allowed to be set`)
    if (value === null && field.required) return refuse('missing', `${name} is required`)
    const stored = value === null ? null : fieldValue(field, value)
    return [
      [name, stored ?? (value === null ? null : refuse('invalid', `${name} must be ${fieldRule(field)}`))],
    ]
  })
  return Object.fromEntries(members)
}

/** The fields of a new user: with defaults, and nothing that is required missing. Null if there are none. */
export function newFields({ auth }: Config, given: FieldChange, refuse: RefuseField): CustomFields | null {
  const members = Object.entries(auth.user.fields).flatMap(([name, field]) => {
    const { default: otherwise, required } = field
    const value = given[name] ?? (otherwise === undefined ? undefined : fieldValueOfText(field, otherwise))
    if (value === undefined && required) return refuse('missing', `${name} is required`)
    return value === undefined ? [] : [[name, value] as const]
  })
  return members.length === 0 ? null : bounded(Object.fromEntries(members), refuse)
}

export function changeFields(user: WithFields, change: FieldChange, refuse: RefuseField): CustomFields {
  const all = Object.entries({ ...fieldsOf(user), ...change })
  return bounded(
    Object.fromEntries(all.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))),
    refuse,
  )
}

function bounded(fields: CustomFields, refuse: RefuseField): CustomFields {
  const isTooLong = JSON.stringify(fields).length > FIELDS_MAX
  return isTooLong
    ? refuse('invalid', `the fields of a user must have at most ${FIELDS_MAX} characters together`)
    : fields
}

/** Those that no two users have the same value of. */
export const uniqueOf = ({ auth }: Config, fields: CustomFields | null | undefined): CustomFields | null =>
  fields == null
    ? null
    : Object.fromEntries(Object.entries(fields).filter(([name]) => auth.user.fields[name]?.unique === true))

/** The field whose value another user has, if that is why an insert or update failed. */
export function takenField(error: unknown): string | undefined {
  const { code, constraint, column } = Object(error) as {
    code?: unknown
    constraint?: unknown
    column?: unknown
  } // pg's DatabaseError
  return code === '23505' && constraint === 'unique_field_value_pkey' ? String(column) : undefined
}

/** For a column of JSON. */
export const fieldsAsJson = (fields: CustomFields | null | undefined): string | undefined =>
  fields == null ? undefined : JSON.stringify(fields)
