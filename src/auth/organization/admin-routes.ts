import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { TO } from '../admin/permissions.ts'
import type { AuthAccess } from '../door/access.ts'
import { COUNT, TOTAL } from '../schemas.ts'
import { allOrganizations } from './all-organizations.ts'
import { ListPage } from './schemas.ts'

const OrganizationSummary = Type.Object(
  {
    id: Id,
    name: Type.String(),
    slug: Type.String(),
    logo: Nullable(Type.String()),
    requireTwoFactor: Type.Boolean(),
    memberCount: Type.Integer(),
    createdAt: Timestamp,
  },
  named('OrganizationSummary'),
)

/** For administrators of the service, who need not be members. */
export function adminOrganizationRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'GET',
    url: '/admin/list-organizations',
    config: { access: access.admin(TO.LIST_ORGANIZATIONS) },
    schema: {
      summary: 'List all organizations, newest first',
      querystring: Type.Object({
        searchValue: Type.Optional(
          Type.String({ maxLength: 320, description: 'Part of the name or of the slug' }),
        ),
        ...ListPage,
        ...COUNT,
      }),
      response: {
        200: Type.Object({
          organizations: Type.Array(OrganizationSummary),
          ...TOTAL,
          limit: Type.Integer(),
          offset: Type.Integer(),
        }),
      },
    },
    handler: ({ query }) => allOrganizations(kernel, query),
  })
}
