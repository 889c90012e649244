import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, Timestamp } from '#kernel/http/schemas.ts'

/** The columns that may leave: the response schema is the allow-list. */
const USER_PROPERTIES = {
  id: Id,
  name: Type.String(),
  email: Type.String(),
  emailVerified: Type.Boolean(),
  image: Nullable(Type.String()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  username: Nullable(Type.String()),
  displayUsername: Nullable(Type.String()),
  twoFactorEnabled: Type.Boolean(),
  isAnonymous: Type.Boolean({
    description: 'The user has no address and no way of signing in; the email is a placeholder',
  }),
}

/** The reduced user of sign-up and sign-in answers. */
export const SignedInUser = Type.Object(USER_PROPERTIES, named('User'))

export const FullUser = Type.Object(
  {
    ...USER_PROPERTIES,
    role: Type.String(),
    banned: Type.Boolean(),
    banReason: Nullable(Type.String()),
    banExpires: Nullable(Timestamp),
  },
  named('FullUser'),
)

export const CurrentSession = Type.Object(
  {
    id: Id,
    token: Type.String({
      description: 'The session token; send it as `Authorization: Bearer` or as the cookie',
    }),
    userId: Id,
    expiresAt: Timestamp,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    ipAddress: Nullable(Type.String()),
    userAgent: Nullable(Type.String()),
    impersonatedBy: Nullable(
      Type.String({ format: 'uuid', description: 'The admin who acts as the user in this session' }),
    ),
    activeOrganizationId: Nullable(Id),
  },
  named('Session'),
)
