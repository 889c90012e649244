import { Type } from 'typebox'
import { IMAGE_MAX } from '#identity/images.ts'
import type { Sessions } from '#identity/live-sessions.ts'
import { NAME_MAX } from '#identity/names.ts'
import { isPermitted } from '#identity/permissions.ts'
import { FullUser } from '#identity/schemas.ts'
import { named } from '#kernel/http/document/components.ts'
import { edge } from '#kernel/http/failures.ts'
import { NOT_EMPTY, Nullable, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { withFields } from '../custom-fields/bodies.ts'
import type { AuthAccess } from '../door/access.ts'
import { CUSTOM_FIELD_FAILURES, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { COUNT, Email, Password, TOTAL } from '../schemas.ts'
import { readUser } from './act-on-user.ts'
import { filterOf, SEARCH } from './list-query.ts'
import { listUsers, userFields } from './list-users.ts'
import { TO } from './permissions.ts'
import { NO_SUCH_ROLE, Role, User, UserId } from './schemas.ts'
import { adminSessionRoutes } from './session-routes.ts'
import { standingRoutes } from './standing-routes.ts'
import { changeUser, createUser } from './users.ts'

const UserData = Type.Object(
  {
    name: Type.Optional(Type.String({ maxLength: NAME_MAX })),
    image: Type.Optional(Nullable(Type.String({ maxLength: IMAGE_MAX }))),
    username: Type.Optional(Type.String({ maxLength: 128 })),
    displayUsername: Type.Optional(Type.String({ maxLength: 128 })),
    email: Type.Optional(Email),
    emailVerified: Type.Optional(Type.Boolean()),
  },
  { ...named('UserFields'), additionalProperties: false },
)
const FIELD_FAILURES = [
  'INVALID_EMAIL',
  'INVALID_USERNAME',
  'USER_ALREADY_EXISTS',
  'USERNAME_IS_ALREADY_TAKEN',
  ...CUSTOM_FIELD_FAILURES,
]

const Permissions = Type.Record(Type.String(), Type.Array(Type.String(), { maxItems: 100 }), {
  maxProperties: 100,
  description: 'Resource → actions; one role has to allow all of them',
})

export function adminRoutes(app: App, kernel: Kernel, access: AuthAccess, sessions: Sessions): void {
  userRoutes(app, kernel, access)
  standingRoutes(app, access)
  adminSessionRoutes(app, kernel, access, sessions)
  app.route({
    method: 'POST',
    url: '/admin/has-permission',
    config: { access: access.signedIn, whileImpersonating: true },
    schema: {
      operationId: 'adminHasPermission',
      summary: 'Whether a role of the caller allows something',
      body: Type.Object(
        {
          permissions: Type.Optional(Permissions),
          permission: Type.Optional({ ...Permissions, deprecated: true }),
        },
        NOT_EMPTY,
      ),
      response: { 200: Type.Object({ error: Type.Null(), success: Type.Boolean() }) },
    },
    handler: async (request) => {
      const { permission, permissions = permission } = request.body
      if (permissions === undefined) throw edge('validation_error', { message: 'permissions is required' })
      return { error: null, success: isPermitted(kernel, request.caller.user, permissions) }
    },
  })
}

/** Users and their fields. */
function userRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'POST',
    url: '/admin/create-user',
    config: {
      access: access.admin(TO.CREATE),
      failures: [
        ...FIELD_FAILURES,
        ...PASSWORD_POLICY_FAILURES,
        NO_SUCH_ROLE,
        'YOU_ARE_NOT_ALLOWED_TO_CHANGE_USERS_ROLE',
        'YOU_ARE_NOT_ALLOWED_TO_SET_USERS_EMAIL',
      ],
    },
    schema: {
      summary: 'Create a user',
      description:
        '`role` needs the permission `user: set-role` too, `email` and `emailVerified` in `data` `user: set-email`.',
      body: Type.Object({
        email: Email,
        password: Password(),
        name: Type.String({ maxLength: NAME_MAX }),
        role: Type.Optional(Role),
        data: Type.Optional(withFields(kernel.config, UserData, { by: 'operator' })),
      }),
      response: { 200: User },
    },
    handler: async (request) => ({
      user: await createUser(request.kernel, request.caller, request.body),
    }),
  })
  app.route({
    method: 'GET',
    url: '/admin/list-users',
    config: { access: access.admin(TO.LIST) },
    schema: {
      summary: 'Search, filter and sort all users',
      querystring: Type.Object({
        ...SEARCH,
        ...filterOf(kernel.config),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
        offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })),
        sortBy: Type.Optional(OneOf(userFields(kernel.config))),
        sortDirection: Type.Optional(OneOf(['asc', 'desc'], { default: 'asc' })),
        ...COUNT,
      }),
      response: {
        200: Type.Object({
          users: Type.Array(FullUser),
          ...TOTAL,
          limit: Type.Integer(),
          offset: Type.Integer(),
        }),
      },
    },
    handler: (request) => listUsers(kernel, request.query),
  })
  app.route({
    method: 'GET',
    url: '/admin/get-user',
    config: { access: access.admin(TO.GET), failures: ['USER_NOT_FOUND'] },
    schema: { summary: 'A user', querystring: Type.Object({ id: UserId }), response: { 200: FullUser } },
    handler: (request) => readUser(kernel, request.query.id),
  })
  app.route({
    method: 'POST',
    url: '/admin/update-user',
    config: {
      access: access.admin(TO.UPDATE),
      failures: [
        'USER_NOT_FOUND',
        'NO_FIELDS_TO_UPDATE',
        ...FIELD_FAILURES,
        'YOU_ARE_NOT_ALLOWED_TO_SET_USERS_EMAIL',
        'YOU_CANNOT_IMPERSONATE_ADMINS',
        'SESSION_NOT_FRESH',
        'USER_IS_ANONYMOUS',
      ],
    },
    schema: {
      operationId: 'adminUpdateUser',
      summary: 'Change fields of a user',
      description:
        '`email` and `emailVerified` need the permission `user: set-email` too. A new address gets no mail, and a proven former one a ' +
        'notice. `emailVerified: true` lets in where verification is required; it proves nothing and removes nothing. ' +
        'The own address needs the password, and the second factor in force, within ten minutes.',
      body: Type.Object({ userId: UserId, data: withFields(kernel.config, UserData, { by: 'operator' }) }),
      response: { 200: FullUser },
    },
    handler: ({ kernel, caller, body: { userId, data } }) => changeUser(kernel, caller, userId, data),
  })
}
