import { Type } from 'typebox'
import { FullUser } from '#identity/schemas.ts'

export const UserId = Type.String({ maxLength: 64, description: 'The id of a user' })
export const Role = Type.Unsafe<string | readonly string[]>({
  type: ['string', 'array'],
  items: { type: 'string' },
  maxItems: 50,
  maxLength: 1_000,
  description: '`user`, `admin` or a role of `auth.admin.roles`; several as a list or joined by commas',
})
export const User = Type.Object({ user: FullUser })
/** The code of an unknown role, in better-auth's words. */
export const NO_SUCH_ROLE = 'YOU_ARE_NOT_ALLOWED_TO_SET_NON_EXISTENT_VALUE'
