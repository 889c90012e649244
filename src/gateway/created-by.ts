import { Type } from 'typebox'
import { Nullable } from '#kernel/http/schemas.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** Of a record that acts for others afterwards. It outlives its creator, since it belongs to the installation. */
export const CreatedBy = Type.Optional(
  Nullable(
    Type.String({
      format: 'uuid',
      description:
        'The user by whose session it was made; null: by the admin key or a command. Absent for a session without `user: [list]`',
    }),
  ),
)

/** The member of an answer: users are for callers who may list them. */
export const creatorFor = (
  { operator }: Pick<Kernel, 'operator'>,
  { createdBy }: { readonly createdBy: string | null },
): { readonly created_by?: string | null } =>
  operator?.listsUsers === false ? {} : { created_by: createdBy }
