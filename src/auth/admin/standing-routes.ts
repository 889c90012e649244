import { Type } from 'typebox'
import type { App } from '#kernel/http/surface.ts'
import type { AuthAccess } from '../door/access.ts'
import { PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { REMOVAL_FAILURES } from '../profile/delete-account.ts'
import { Password, Status, SUCCESS, Succeeded } from '../schemas.ts'
import { banAsAdmin, unbanAsAdmin } from './bans.ts'
import { setUserPassword } from './passwords.ts'
import { TO } from './permissions.ts'
import { setUserRole } from './roles.ts'
import { NO_SUCH_ROLE, Role, User, UserId } from './schemas.ts'
import { removeUserAsAdmin } from './users.ts'

/** Role, ban, password and removal of a user. */
export function standingRoutes(app: App, access: AuthAccess): void {
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
