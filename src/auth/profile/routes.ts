import { Type } from 'typebox'
import { IMAGE_MAX } from '#identity/images.ts'
import { NAME_MAX } from '#identity/names.ts'
import { NOT_EMPTY, Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { withFields } from '../custom-fields/bodies.ts'
import type { AuthAccess } from '../door/access.ts'
import { clearSessionToken } from '../door/cookies.ts'
import { CUSTOM_FIELD_FAILURES, fail, PASSWORD_CHECK_FAILURES } from '../errors.ts'
import { followLink } from '../redirect.ts'
import { CallbackUrl, LinkToken, Password, Status } from '../schemas.ts'
import { deleteAccount, deleteByLink, REMOVAL_FAILURES } from './delete-account.ts'
import { changeProfile } from './profile.ts'

const UpdateUser = Type.Object(
  {
    name: Type.Optional(Type.String({ maxLength: NAME_MAX })),
    image: Type.Optional(Nullable(Type.String({ maxLength: IMAGE_MAX }))),
    username: Type.Optional(Type.String({ maxLength: 128 })),
    displayUsername: Type.Optional(Type.String({ maxLength: 128 })),
  },
  NOT_EMPTY,
)
const Deleted = Type.Object({ success: Type.Boolean(), message: Type.String() })
const DELETING = [
  'DELETE_USER_DISABLED',
  'SESSION_NOT_FRESH',
  ...PASSWORD_CHECK_FAILURES,
  'INVALID_RESET_TOKEN',
  ...REMOVAL_FAILURES,
]
const DELETED = { success: true, message: 'User deleted' }

export function profileRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'POST',
    url: '/update-user',
    config: {
      access: access.signedIn,
      // Name and image only (profile.ts).
      whileImpersonating: true,
      failures: [
        'EMAIL_CAN_NOT_BE_UPDATED',
        'NOT_WHILE_IMPERSONATING',
        'NO_FIELDS_TO_UPDATE',
        'INVALID_USERNAME',
        'USERNAME_IS_ALREADY_TAKEN',
        ...CUSTOM_FIELD_FAILURES,
      ],
    },
    schema: {
      summary: 'Change name, picture or username',
      body: withFields(kernel.config, UpdateUser, { by: 'user' }),
      response: { 200: Status },
    },
    handler: async (request) => {
      if ('email' in request.body) throw fail('EMAIL_CAN_NOT_BE_UPDATED')
      await changeProfile(request.kernel, request.caller, request.body)
      return { status: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/delete-user',
    config: { access: access.signedIn, limit: 'mail', redirects: ['callbackURL'], failures: DELETING },
    schema: {
      summary: 'Delete the own account',
      body: Type.Object({
        password: Type.Optional(Password()),
        token: Type.Optional(LinkToken),
        callbackURL: CallbackUrl(),
      }),
      response: { 200: Deleted },
    },
    handler: async (request, reply) => {
      const outcome = await deleteAccount(request.kernel, request.caller, request.body)
      if (outcome === 'mailed') return { success: true, message: 'Verification email sent' }
      clearSessionToken(kernel.config, reply)
      return DELETED
    },
  })
  app.route({
    method: 'GET',
    url: '/delete-user/callback',
    config: { access: access.signedIn, redirects: ['callbackURL'], failures: DELETING },
    schema: {
      summary: 'Follow the link that deletes the account',
      querystring: Type.Object({ token: LinkToken, callbackURL: CallbackUrl() }),
      response: { 200: Deleted },
    },
    handler: (request, reply) =>
      followLink(reply, async () => {
        await deleteByLink(request.kernel, request.caller, request.query.token)
        clearSessionToken(kernel.config, reply)
        return { answer: DELETED }
      }),
  })
}
