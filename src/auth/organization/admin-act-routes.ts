import { Type } from 'typebox'
import type { App } from '#kernel/http/surface.ts'
import { TO } from '../admin/permissions.ts'
import type { AuthAccess } from '../door/access.ts'
import { Email, SUCCESS, Succeeded } from '../schemas.ts'
import {
  cancelInvitationAsAdmin,
  changeMemberRoleAsAdmin,
  changeOrganizationAsAdmin,
  deleteOrganizationAsAdmin,
  inviteAsAdmin,
  removeMemberAsAdmin,
} from './by-admin.ts'
import {
  GivenRole,
  Invitation,
  InvitationId,
  Member,
  MemberId,
  NamedById,
  Organization,
  OrganizationChange,
} from './schemas.ts'

const UNKNOWN = 'ORGANIZATION_NOT_FOUND'
const ONLY_OWNER = 'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER'

/** Acts of administrators of the service, who need not be members. */
export function adminOrganizationActRoutes(app: App, access: AuthAccess): void {
  organizationActs(app, access)
  memberActs(app, access)
  invitationActs(app, access)
}

function organizationActs(app: App, access: AuthAccess): void {
  app.route({
    method: 'POST',
    url: '/admin/update-organization',
    config: {
      access: access.admin(TO.UPDATE_ORGANIZATION),
      failures: [UNKNOWN, 'NO_FIELDS_TO_UPDATE', 'ORGANIZATION_SLUG_ALREADY_TAKEN'],
    },
    schema: {
      summary: 'Change an organization',
      body: Type.Object({ ...NamedById, data: OrganizationChange }),
      response: { 200: Organization },
    },
    handler: ({ kernel, caller, body }) =>
      changeOrganizationAsAdmin(kernel, caller, body.organizationId, body.data),
  })
  app.route({
    method: 'POST',
    url: '/admin/delete-organization',
    config: { access: access.admin(TO.DELETE_ORGANIZATION), failures: [UNKNOWN] },
    schema: {
      summary: 'Delete an organization, with members and invitations',
      body: Type.Object(NamedById),
      response: { 200: Succeeded },
    },
    handler: async ({ kernel, caller, body }) => {
      await deleteOrganizationAsAdmin(kernel, caller, body.organizationId)
      return SUCCESS
    },
  })
}

function memberActs(app: App, access: AuthAccess): void {
  app.route({
    method: 'POST',
    url: '/admin/update-member-role',
    config: {
      access: access.admin(TO.MANAGE_MEMBERS),
      failures: [
        ...[UNKNOWN, 'MEMBER_NOT_FOUND', 'ROLE_NOT_FOUND', 'EMAIL_NOT_VERIFIED'],
        'YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER',
      ],
    },
    schema: {
      summary: 'Give a member of an organization other roles there',
      body: Type.Object({ ...NamedById, memberId: MemberId, role: GivenRole }),
      response: { 200: Member },
    },
    handler: ({ kernel, caller, body }) => changeMemberRoleAsAdmin(kernel, caller, body),
  })
  app.route({
    method: 'POST',
    url: '/admin/remove-member',
    config: {
      access: access.admin(TO.MANAGE_MEMBERS),
      failures: [UNKNOWN, 'MEMBER_NOT_FOUND', ONLY_OWNER],
    },
    schema: {
      summary: 'Remove a member from an organization',
      body: Type.Object({ ...NamedById, memberId: MemberId }),
      response: { 200: Succeeded },
    },
    handler: async ({ kernel, caller, body }) => {
      await removeMemberAsAdmin(kernel, caller, body)
      return SUCCESS
    },
  })
}

function invitationActs(app: App, access: AuthAccess): void {
  app.route({
    method: 'POST',
    url: '/admin/invite-member',
    config: {
      access: access.admin(TO.MANAGE_MEMBERS),
      limit: 'mail',
      failures: [
        ...[UNKNOWN, 'INVALID_EMAIL', 'ROLE_NOT_FOUND', 'EMAIL_NOT_VERIFIED', 'INVITATION_LIMIT_REACHED'],
        'USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION',
        'USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION',
      ],
    },
    schema: {
      summary: 'Invite an address to an organization by mail',
      body: Type.Object({
        ...NamedById,
        email: Email,
        role: GivenRole,
        resend: Type.Optional(
          Type.Boolean({
            default: false,
            description: 'Extend a pending invitation of the address and mail again',
          }),
        ),
      }),
      response: { 200: Invitation },
    },
    handler: ({ kernel, caller, body }) => inviteAsAdmin(kernel, caller, body),
  })
  app.route({
    method: 'POST',
    url: '/admin/cancel-invitation',
    config: { access: access.admin(TO.MANAGE_MEMBERS), failures: [UNKNOWN, 'INVITATION_NOT_FOUND'] },
    schema: {
      summary: 'Cancel a pending invitation',
      body: Type.Object({ invitationId: InvitationId }),
      response: { 200: Invitation },
    },
    handler: ({ kernel, caller, body }) => cancelInvitationAsAdmin(kernel, caller, body.invitationId),
  })
}
