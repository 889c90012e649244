import { type TProperties, Type } from 'typebox'
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
import type { AuthAccess } from '../door/access.ts'
import { PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { REMOVAL_FAILURES } from '../profile/delete-account.ts'
import { Email, Password, Status, SUCCESS, Succeeded } from '../schemas.ts'
import { readUser } from './act-on-user.ts'
import { banAsAdmin, unbanAsAdmin } from './bans.ts'
import { FILTER_OPERATORS, listUsers, SEARCHED, TEXT_OPERATORS, USER_FIELDS } from './list-users.ts'
import { setUserPassword } from './passwords.ts'
import { TO } from './permissions.ts'
import { setUserRole } from './roles.ts'
import { adminSessionRoutes } from './session-routes.ts'
import { changeUser, createUser, removeUserAsAdmin } from './users.ts'

const UserId = Type.String({ maxLength: 64, description: 'The id of a user' })
const Role = Type.Unsafe<string | readonly string[]>({
  type: ['string', 'array'],
  items: { type: 'string' },
  maxItems: 50,
  maxLength: 1_000,
  description: '`user`, `admin` or a role of `auth.admin.roles`; several as a list or joined by commas',
})
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
const User = Type.Object({ user: FullUser })

const FIELD_FAILURES = [
  'INVALID_EMAIL',
  'INVALID_USERNAME',
  'USER_ALREADY_EXISTS',
  'USERNAME_IS_ALREADY_TAKEN',
]
const NO_SUCH_ROLE = 'YOU_ARE_NOT_ALLOWED_TO_SET_NON_EXISTENT_VALUE'

const Permissions = Type.Record(Type.String(), Type.Array(Type.String(), { maxItems: 100 }), {
  maxProperties: 100,
  description: 'Resource → actions; one role has to allow all of them',
})

export function adminRoutes(app: App, kernel: Kernel, access: AuthAccess, sessions: Sessions): void {
  userRoutes(app, kernel, access)
  accountRoutes(app, access)
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
        data: Type.Optional(UserData),
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
        ...FILTER,
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
        offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0 })),
        sortBy: Type.Optional(OneOf(USER_FIELDS)),
        sortDirection: Type.Optional(OneOf(['asc', 'desc'], { default: 'asc' })),
      }),
      response: {
        200: Type.Object({
          users: Type.Array(FullUser),
          total: Type.Integer({ description: 'All users that fit' }),
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
      body: Type.Object({ userId: UserId, data: UserData }),
      response: { 200: FullUser },
    },
    handler: ({ kernel, caller, body: { userId, data } }) => changeUser(kernel, caller, userId, data),
  })
}

const SEARCH = {
  searchValue: Type.Optional(Type.String({ maxLength: 320 })),
  searchField: Type.Optional(OneOf(SEARCHED, { default: 'email' })),
  searchOperator: Type.Optional(OneOf(TEXT_OPERATORS, { default: 'contains' })),
} satisfies TProperties

const FILTER = {
  filterField: Type.Optional(OneOf(USER_FIELDS, { default: 'email' })),
  filterOperator: Type.Optional(OneOf(FILTER_OPERATORS, { default: 'eq' })),
  filterValue: Type.Optional(
    Type.Unsafe<string | readonly string[]>({
      type: ['string', 'array'],
      items: { type: 'string', maxLength: 320 },
      // Together they fit in the headers of a request (`limits.header`).
      maxItems: 32,
      maxLength: 8_000,
      description: 'For `in` and `not_in` several, as repeated parameters or joined by commas',
    }),
  ),
} satisfies TProperties

/** Role, ban, password and removal of a user. */
function accountRoutes(app: App, access: AuthAccess): void {
  app.route({
    method: 'POST',
    url: '/admin/set-role',
    config: {
      access: access.admin(TO.SET_ROLE),
      failures: ['USER_NOT_FOUND', NO_SUCH_ROLE, 'LAST_ADMIN', 'USER_IS_ANONYMOUS'],
    },
    schema: {
      summary: 'Give a user another role',
      body: Type.Object({ userId: UserId, role: Role }),
      response: { 200: User },
    },
    handler: async ({ kernel, caller, body: { userId, role } }) => ({
      user: await setUserRole(kernel, caller, userId, role),
    }),
  })
  app.route({
    method: 'POST',
    url: '/admin/ban-user',
    config: {
      access: access.admin(TO.BAN),
      failures: ['USER_NOT_FOUND', 'YOU_CANNOT_BAN_YOURSELF', 'LAST_ADMIN'],
    },
    schema: {
      summary: 'Ban a user and end all of their sessions',
      body: Type.Object({
        userId: UserId,
        banReason: Type.Optional(Type.String({ maxLength: 1_024 })),
        banExpiresIn: Type.Optional(
          Type.Integer({ minimum: 1, maximum: MAX_BAN, description: 'Seconds; default: until it is lifted' }),
        ),
      }),
      response: { 200: User },
    },
    handler: async ({ kernel, caller, body: { userId, banReason: reason, banExpiresIn: seconds } }) => ({
      user: await banAsAdmin(kernel, caller, userId, { reason, seconds }),
    }),
  })
  app.route({
    method: 'POST',
    url: '/admin/unban-user',
    config: { access: access.admin(TO.BAN), failures: ['USER_NOT_FOUND'] },
    schema: { summary: 'Lift a ban', body: Type.Object({ userId: UserId }), response: { 200: User } },
    handler: async (request) => ({
      user: await unbanAsAdmin(request.kernel, request.caller, request.body.userId),
    }),
  })
  app.route({
    method: 'POST',
    url: '/admin/remove-user',
    config: {
      access: access.admin(TO.DELETE),
      failures: ['USER_NOT_FOUND', 'YOU_CANNOT_REMOVE_YOURSELF', ...REMOVAL_FAILURES],
    },
    schema: {
      summary: 'Delete a user and all that belongs to the account',
      body: Type.Object({ userId: UserId }),
      response: { 200: Succeeded },
    },
    handler: async (request) => {
      await removeUserAsAdmin(request.kernel, request.caller, request.body.userId)
      return SUCCESS
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/set-user-password',
    config: {
      access: access.admin(TO.SET_PASSWORD),
      failures: [
        'USER_NOT_FOUND',
        'YOU_CANNOT_IMPERSONATE_ADMINS',
        'SESSION_NOT_FRESH',
        'USER_IS_ANONYMOUS',
        ...PASSWORD_POLICY_FAILURES,
      ],
    },
    schema: {
      summary: 'Set the password of a user and end all of their sessions',
      description: 'The own one needs the present one, or without one another proof, within ten minutes.',
      body: Type.Object({
        newPassword: Password(),
        userId: UserId,
        mustChange: Type.Optional(
          Type.Boolean({ default: false, description: 'The next sign-in mails a link to choose another' }),
        ),
      }),
      response: { 200: Status },
    },
    handler: async (request) => {
      await setUserPassword(request.kernel, request.caller, request.body)
      return { status: true }
    },
  })
}

/** A hundred years. */
const MAX_BAN = 3_155_760_000
