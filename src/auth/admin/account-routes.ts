import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, OneOf, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { listUserAccounts, listUserFactors } from './accounts.ts'
import { TO } from './permissions.ts'

const OfUser = Type.Object({ userId: Type.String({ maxLength: 64, description: 'The id of a user' }) })

const Accounts = Type.Object({
  accounts: Type.Array(
    Type.Object(
      {
        id: Id,
        providerId: Type.String({ description: '`credential` is the password' }),
        accountId: Type.String({ description: 'The id at the provider' }),
        scopes: Type.Array(Type.String()),
        createdAt: Timestamp,
        updatedAt: Timestamp,
      },
      named('AccountOfUser'),
    ),
  ),
})

const Factors = Type.Object(
  {
    twoFactor: Nullable(
      Type.Object(
        {
          method: OneOf(['totp', 'otp']),
          createdAt: Timestamp,
          backupCodes: Type.Integer({ description: 'Those that are left' }),
        },
        named('TwoFactorOfUser'),
      ),
    ),
    passkeys: Type.Array(
      Type.Object(
        {
          id: Id,
          name: Nullable(Type.String()),
          deviceType: Type.String({ description: '`singleDevice` or `multiDevice`' }),
          backedUp: Type.Boolean(),
          createdAt: Timestamp,
        },
        named('PasskeyOfUser'),
      ),
    ),
    trustedDevices: Type.Integer({ description: 'Browsers that need no second factor' }),
  },
  named('FactorsOfUser'),
)

/** The ways in which a user signs in. No hash, token, secret or key is in an answer. */
export function adminAccountRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const config = { access: access.admin(TO.GET), failures: ['USER_NOT_FOUND'] }
  app.route({
    method: 'GET',
    url: '/admin/list-user-accounts',
    config,
    schema: {
      summary: 'The accounts of a user: the password, and those at providers',
      querystring: OfUser,
      response: { 200: Accounts },
    },
    handler: async (request) => ({
      accounts: await listUserAccounts(kernel, request.caller, request.query.userId),
    }),
  })
  app.route({
    method: 'GET',
    url: '/admin/list-user-factors',
    config,
    schema: {
      summary: 'The second factor, passkeys and trusted devices of a user',
      querystring: OfUser,
      response: { 200: Factors },
    },
    handler: (request) => listUserFactors(kernel, request.caller, request.query.userId),
  })
}
