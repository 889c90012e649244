import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { TO } from '../admin/permissions.ts'
import { UserId } from '../admin/schemas.ts'
import type { AuthAccess } from '../door/access.ts'
import { COUNT, TOTAL } from '../schemas.ts'
import {
  allInvitations,
  allMembers,
  allOrganizations,
  organizationsOfUser,
  readOrganization,
} from './all-organizations.ts'
import { Invitation, ListPage, MemberWithUser, NamedById, Organization } from './schemas.ts'

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

const OrganizationOfUser = Type.Object(
  { id: Id, name: Type.String(), slug: Type.String(), role: Type.String(), joinedAt: Timestamp },
  named('OrganizationOfUser'),
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
  app.route({
    method: 'GET',
    url: '/admin/list-user-organizations',
    config: { access: access.admin(TO.LIST_ORGANIZATIONS), failures: ['USER_NOT_FOUND'] },
    schema: {
      summary: 'The organizations of a user, and the roles there',
      querystring: Type.Object({ userId: UserId, ...ListPage }),
      response: { 200: Type.Object({ organizations: Type.Array(OrganizationOfUser) }) },
    },
    handler: async ({ query }) => ({ organizations: await organizationsOfUser(kernel, query) }),
  })
  app.route({
    method: 'GET',
    url: '/admin/get-organization',
    config: { access: access.admin(TO.LIST_ORGANIZATIONS), failures: ['ORGANIZATION_NOT_FOUND'] },
    schema: {
      summary: 'One organization',
      querystring: Type.Object(NamedById),
      response: { 200: Organization },
    },
    handler: ({ query }) => readOrganization(kernel, query.organizationId),
  })
  app.route({
    method: 'GET',
    url: '/admin/list-organization-members',
    config: { access: access.admin(TO.LIST_MEMBERS), failures: ['ORGANIZATION_NOT_FOUND'] },
    schema: {
      summary: 'The members of an organization, in the order in which they joined',
      querystring: Type.Object({ ...NamedById, ...ListPage }),
      response: { 200: Type.Object({ members: Type.Array(MemberWithUser), total: Type.Integer() }) },
    },
    handler: ({ query }) => allMembers(kernel, query),
  })
  app.route({
    method: 'GET',
    url: '/admin/list-organization-invitations',
    config: { access: access.admin(TO.LIST_MEMBERS), failures: ['ORGANIZATION_NOT_FOUND'] },
    schema: {
      summary: 'The invitations of an organization in any state, newest first',
      querystring: Type.Object({ ...NamedById, ...ListPage }),
      response: { 200: Type.Object({ invitations: Type.Array(Invitation) }) },
    },
    handler: async ({ query }) => ({ invitations: await allInvitations(kernel, query) }),
  })
}
