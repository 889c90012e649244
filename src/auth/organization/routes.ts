import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { edge } from '#kernel/http/failures.ts'
import { NOT_EMPTY, Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { asAnswer } from '../redirect.ts'
import { createOrganizationAccess, type OrganizationAccess } from './access.ts'
import { adminOrganizationActRoutes } from './admin-act-routes.ts'
import { adminOrganizationRoutes } from './admin-routes.ts'
import { invitationPage } from './invitation-page.ts'
import { invitationRoutes } from './invitation-routes.ts'
import { memberRoutes } from './member-routes.ts'
import {
  changeOrganization,
  checkSlug,
  createOrganization,
  deleteOrganization,
  getFullOrganization,
  getOrganization,
  hasPermission,
  organizationsOf,
  setActiveOrganization,
} from './organization.ts'
import { TO } from './roles.ts'
import {
  CreatedOrganization,
  FullOrganization,
  ListPage,
  Named,
  NamedById,
  NamedByIdOrSlug,
  Organization,
  OrganizationChange,
  OrganizationFields,
  OrganizationName,
  OrganizationOrNull,
  Permissions,
  pageOf,
  Slug,
  UserId,
} from './schemas.ts'

const STRANGER = 'USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION'
const NONE_ACTIVE = 'NO_ACTIVE_ORGANIZATION'

export function organizationRoutes(app: App, kernel: Kernel, auth: AuthAccess): void {
  const access = createOrganizationAccess(auth)
  changingRoutes(app, access)
  readingRoutes(app, kernel, access)
  memberRoutes(app, kernel, access)
  invitationRoutes(app, kernel, access)
  invitationPage(app, kernel, auth)
  adminOrganizationRoutes(app, kernel, auth)
  adminOrganizationActRoutes(app, auth)
}

function changingRoutes(app: App, access: OrganizationAccess): void {
  app.route({
    method: 'POST',
    url: '/organization/create',
    config: {
      access: access.signedIn,
      failures: [
        'ORGANIZATION_ALREADY_EXISTS',
        'USER_IS_ANONYMOUS',
        'YOU_ARE_NOT_ALLOWED_TO_CREATE_A_NEW_ORGANIZATION',
        'YOU_HAVE_REACHED_THE_MAXIMUM_NUMBER_OF_ORGANIZATIONS',
        'USER_NOT_FOUND',
      ],
    },
    schema: {
      operationId: 'createOrganization',
      summary: 'Create an organization and own it',
      body: Type.Object({
        name: OrganizationName,
        slug: Slug,
        ...OrganizationFields,
        userId: Type.Optional({ ...UserId, description: 'The owner; for admins who may update users' }),
        keepCurrentActiveOrganization: Type.Optional(
          Type.Boolean({ default: false, description: 'True: the new organization does not become active' }),
        ),
      }),
      response: { 200: CreatedOrganization },
    },
    handler: (request) => createOrganization(request.kernel, request.caller, request.body),
  })
  app.route({
    method: 'POST',
    url: '/organization/update',
    config: {
      access: access.memberWith(TO.UPDATE),
      failures: [STRANGER, NONE_ACTIVE, 'NO_FIELDS_TO_UPDATE', 'ORGANIZATION_SLUG_ALREADY_TAKEN'],
    },
    schema: {
      operationId: 'updateOrganization',
      summary: 'Change an organization',
      body: Type.Object({
        ...Named,
        data: OrganizationChange,
      }),
      response: { 200: Organization },
    },
    handler: (request) => changeOrganization(request.kernel, request.caller, request.body, request.body.data),
  })
  app.route({
    method: 'POST',
    url: '/organization/delete',
    config: {
      access: access.memberWith(TO.DELETE),
      failures: [STRANGER],
    },
    schema: {
      operationId: 'deleteOrganization',
      summary: 'Delete an organization, with members and invitations',
      body: Type.Object(NamedById),
      response: { 200: Type.String({ description: 'Its id' }) },
    },
    handler: async (request, reply) => {
      const id = await deleteOrganization(request.kernel, request.caller, request.body.organizationId)
      // Fastify itself would send a text as text/plain.
      return reply.type('application/json; charset=utf-8').send(JSON.stringify(id))
    },
  })
  app.route({
    method: 'POST',
    url: '/organization/set-active',
    config: { whileImpersonating: true, access: access.member, failures: [STRANGER] },
    schema: {
      operationId: 'setActiveOrganization',
      summary: 'Make an organization active in the session, or none',
      body: Type.Object({
        organizationId: Type.Optional(Nullable(NamedById.organizationId)),
        organizationSlug: Type.Optional(Nullable(Slug)),
      }),
      response: { 200: OrganizationOrNull },
    },
    handler: async (request, reply) =>
      orNull(reply, await setActiveOrganization(request.kernel, request.caller, request.body)),
  })
}

function readingRoutes(app: App, kernel: Kernel, access: OrganizationAccess): void {
  app.route({
    method: 'GET',
    url: '/organization/get-organization',
    config: { whileImpersonating: true, access: access.member, failures: [STRANGER] },
    schema: {
      operationId: 'getOrganization',
      summary: 'An organization of the user',
      querystring: Type.Object(NamedByIdOrSlug),
      response: { 200: OrganizationOrNull },
    },
    handler: async (request, reply) =>
      orNull(reply, await getOrganization(kernel, request.caller, request.query)),
  })
  app.route({
    method: 'GET',
    url: '/organization/get-full-organization',
    config: { whileImpersonating: true, access: access.member, failures: [STRANGER] },
    schema: {
      operationId: 'getFullOrganization',
      summary: 'An organization of the user, with members and invitations',
      querystring: Type.Object({
        ...NamedByIdOrSlug,
        membersLimit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
      }),
      response: { 200: FullOrganization },
    },
    handler: async (request, reply) =>
      orNull(reply, await getFullOrganization(kernel, request.caller, request.query)),
  })
  app.route({
    method: 'GET',
    url: '/organization/list',
    config: { whileImpersonating: true, access: access.signedIn },
    schema: {
      operationId: 'listOrganizations',
      summary: 'The organizations of the user',
      querystring: Type.Object(ListPage),
      response: { 200: Type.Array(Organization) },
    },
    handler: (request) => organizationsOf(kernel, request.caller, pageOf(request.query)),
  })
  app.route({
    method: 'POST',
    url: '/organization/check-slug',
    config: {
      whileImpersonating: true,
      access: access.signedIn,
      failures: ['ORGANIZATION_SLUG_ALREADY_TAKEN'],
    },
    schema: {
      operationId: 'checkOrganizationSlug',
      summary: 'Is a slug free?',
      body: Type.Object({ slug: Slug }),
      response: { 200: Type.Object({ status: Type.Boolean(), message: Type.String() }) },
    },
    handler: async ({ body }) => {
      await checkSlug(kernel, body.slug)
      return { status: true, message: 'The slug is free' }
    },
  })
  app.route({
    method: 'POST',
    url: '/organization/has-permission',
    config: { whileImpersonating: true, access: access.member, failures: [STRANGER, NONE_ACTIVE] },
    schema: {
      operationId: 'hasOrganizationPermission',
      summary: 'May the user do this in the organization?',
      body: Type.Object(
        {
          ...Named,
          permissions: Type.Optional(Permissions),
          permission: Type.Optional({
            ...Permissions,
            description: 'Former name of `permissions`',
            deprecated: true,
          }),
        },
        NOT_EMPTY,
      ),
      response: { 200: Type.Object({ error: Type.Null(), success: Type.Boolean() }) },
    },
    handler: async (request) => {
      const { permission, permissions = permission, ...named } = request.body
      if (permissions === undefined) throw edge('validation_error', { message: 'permissions is required' })
      return { error: null, success: await hasPermission(kernel, request.caller, named, permissions) }
    },
  })
}

/** Fastify itself would send null as an empty body. */
const orNull = <T>(reply: FastifyReply, found: T | null): T | null =>
  found ?? asAnswer(reply.type('application/json; charset=utf-8').serializer(JSON.stringify).send(null))
