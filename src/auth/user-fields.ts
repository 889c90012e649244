import { emailFrom } from '#identity/emails.ts'
import { imageFrom } from '#identity/images.ts'
import { NAME_RULE, nameFrom } from '#identity/names.ts'
import { edge } from '#kernel/http/failures.ts'
import { fail } from './errors.ts'

/** The address, in the form that is stored. */
export function acceptableEmail(text: string): string {
  const email = emailFrom(text)
  if (email === undefined) throw fail('INVALID_EMAIL')
  return email
}

/** The name, in the form that is stored. */
export function acceptableName(text: string): string {
  const name = nameFrom(text)
  if (name === undefined) throw edge('validation_error', { message: `name must be ${NAME_RULE}` })
  return name
}

/** The URL of a picture, in the form that is stored; null removes the picture. */
export function acceptableImage(text: string | null, field = 'image'): string | null {
  if (text === null) return null
  const image = imageFrom(text)
  if (image === undefined)
    throw edge('validation_error', { message: `${field} must be an http or https URL` })
  return image
}
