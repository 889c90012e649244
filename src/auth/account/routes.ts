import { Type } from 'typebox'
import { listAccounts } from '#identity/accounts.ts'
import { named } from '#kernel/http/components.ts'
import { Id, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type AuthAccess, callerOf, kernelFor } from '../access.ts'
import { Status } from '../schemas.ts'
import { unlinkAccount } from './account.ts'

const LinkedAccount = Type.Object(
  {
    id: Id,
    provider: Type.String(),
    providerId: Type.String(),
    accountId: Type.String(),
    userId: Id,
    scopes: Type.Array(Type.String()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  named('LinkedAccount'),
)

export function accountRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'GET',
    url: '/list-accounts',
    config: { access: access.signedIn, whileImpersonating: true },
    schema: { summary: 'Ways in which the user can sign in', response: { 200: Type.Array(LinkedAccount) } },
    handler: async (request) => {
      const accounts = await listAccounts(kernel.db, callerOf(request).user.id)
      return accounts.map((account) => ({ ...account, provider: account.providerId }))
    },
  })
  app.route({
    method: 'POST',
    url: '/unlink-account',
    config: { access: access.fresh, failures: ['ACCOUNT_NOT_FOUND', 'FAILED_TO_UNLINK_LAST_ACCOUNT'] },
    schema: {
      summary: 'Remove a way of signing in',
      body: Type.Object({
        providerId: Type.Optional(Type.String({ maxLength: 128 })),
        accountId: Type.Optional(
          Type.String({ maxLength: 256, description: 'The id of the row, or of the provider' }),
        ),
      }),
      response: { 200: Status },
    },
    handler: async (request) => {
      await unlinkAccount(kernelFor(kernel, request), callerOf(request), request.body)
      return { status: true }
    },
  })
}
