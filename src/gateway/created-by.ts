import { Type } from 'typebox'
import { Nullable } from '#kernel/http/schemas.ts'

/** Of a record that acts for others afterwards. It outlives its creator, since it belongs to the installation. */
export const CreatedBy = Nullable(
  Type.String({
    format: 'uuid',
    description: 'The user by whose session it was made; null: by the admin key or a command',
  }),
)
