import { Type } from 'typebox'
import { NAME_MAX } from '#identity/names.ts'
import { permissionsOf } from '#identity/permissions.ts'
import { named } from '#kernel/http/document/components.ts'
import { onThisMachine } from '#kernel/http/own-host.ts'
import { Id } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { Email, Password } from '../schemas.ts'
import { createFirstAdmin } from './first-admin.ts'

const Actions = Type.Record(Type.String(), Type.Array(Type.String()))

const OwnPermissions = Type.Object(
  {
    user: Type.Object({ id: Id, name: Type.String(), email: Type.String() }, named('PermittedUser')),
    permissions: Type.Unsafe<Record<string, readonly string[]>>({
      ...Actions,
      description: 'Resource → actions, `operator` among them; each is held by one of the roles',
    }),
    gateway: Type.Unsafe<Record<string, readonly string[]>>({
      ...Actions,
      description: 'Client → rights on the gateway; `*` is every client',
    }),
  },
  named('OwnPermissions'),
)

/** Routes of a console beside those of administration: the permissions of the person, and the first admin. */
export function adminConsoleRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'GET',
    url: '/admin/list-permissions',
    config: { access: access.signedIn, whileImpersonating: true },
    schema: {
      operationId: 'listPermissions',
      summary: 'Everything that the roles of the caller allow',
      response: { 200: OwnPermissions },
    },
    handler: async ({ caller: { user } }) => ({ ...permissionsOf(kernel, user), user }),
  })
  if (!kernel.config.console.enabled) return
  app.route({
    method: 'POST',
    url: '/admin/create-first-admin',
    config: {
      // Knows the session, so that an impersonated one is refused.
      access: onThisMachine(kernel, access.known),
      withoutSecondFactor: true,
      captcha: false,
      limit: 'sign_up',
      failures: [
        ...['INVALID_TOKEN', 'INVALID_EMAIL', 'MISSING_FIELD', 'USER_ALREADY_EXISTS'],
        ...PASSWORD_POLICY_FAILURES,
      ],
    },
    schema: {
      operationId: 'createFirstAdmin',
      summary: 'Become the first admin, by the link that a start on a terminal has printed',
      description: 'Once, within ten minutes, from the same machine, and while there is no admin.',
      body: Type.Object({
        token: Type.String({ maxLength: 256, description: 'The fragment of the link' }),
        name: Type.String({ maxLength: NAME_MAX }),
        email: Email,
        password: Password(),
      }),
      response: { 200: Type.Object({ id: Id }) },
    },
    handler: ({ kernel, body }) => createFirstAdmin(kernel, body),
  })
}
