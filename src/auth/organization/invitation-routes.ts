import { Type } from 'typebox'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { Email } from '../schemas.ts'
import type { OrganizationAccess } from './access.ts'
import {
  acceptInvitation,
  cancelInvitation,
  getInvitation,
  invitationsOf,
  invitationsTo,
  rejectInvitation,
} from './invitations.ts'
import { TO } from './roles.ts'
import {
  AcceptedInvitation,
  CanceledInvitation,
  GivenRole,
  Invitation,
  InvitationId,
  InvitationView,
  ListPage,
  Named,
  pageOf,
  RejectedInvitation,
} from './schemas.ts'
import { inviteMember } from './sent-invitations.ts'

const NAMING = ['USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION', 'NO_ACTIVE_ORGANIZATION']
const ANSWERING = [
  'INVITATION_NOT_FOUND',
  'EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION',
]
const ById = Type.Object({ invitationId: InvitationId })

export function invitationRoutes(app: App, kernel: Kernel, access: OrganizationAccess): void {
  app.route({
    method: 'POST',
    url: '/organization/invite-member',
    config: {
      access: access.memberWith(TO.INVITE),
      limit: 'mail',
      failures: [
        ...NAMING,
        'INVALID_EMAIL',
        'ROLE_NOT_FOUND',
        'TEAMS_NOT_ENABLED',
        'YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE',
        'EMAIL_NOT_VERIFIED',
        'USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION',
        'USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION',
        'INVITATION_LIMIT_REACHED',
      ],
    },
    schema: {
      operationId: 'inviteMember',
      summary: 'Invite an address by mail',
      body: Type.Object({
        ...Named,
        email: Email,
        role: GivenRole,
        resend: Type.Optional(
          Type.Boolean({
            default: false,
            description: 'Extend a pending invitation of the address and mail again',
          }),
        ),
        teamId: Type.Optional(Type.Unknown({ description: 'Refused: there are no teams' })),
      }),
      response: { 200: Invitation },
    },
    handler: async (request) => {
      const { teamId = null, ...asked } = request.body
      if (teamId !== null) throw fail('TEAMS_NOT_ENABLED')
      return inviteMember(request.kernel, request.caller, asked, asked)
    },
  })
  app.route({
    method: 'POST',
    url: '/organization/cancel-invitation',
    config: {
      access: access.memberWith(TO.CANCEL_INVITATION),
      failures: ['INVITATION_NOT_FOUND', ...NAMING],
    },
    schema: {
      operationId: 'cancelInvitation',
      summary: 'Cancel a pending invitation',
      body: ById,
      response: { 200: CanceledInvitation },
    },
    handler: async (request) => ({
      ...(await cancelInvitation(request.kernel, request.caller, request.body.invitationId)),
      message: 'The invitation is canceled',
    }),
  })
  app.route({
    method: 'POST',
    url: '/organization/accept-invitation',
    config: {
      access: access.recipient,
      failures: [
        ...ANSWERING,
        'USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION',
        'ORGANIZATION_MEMBERSHIP_LIMIT_REACHED',
      ],
    },
    schema: {
      operationId: 'acceptInvitation',
      summary: 'Accept an invitation, and make its organization active',
      body: ById,
      response: { 200: AcceptedInvitation },
    },
    handler: (request) => acceptInvitation(request.kernel, request.caller, request.body.invitationId),
  })
  app.route({
    method: 'POST',
    url: '/organization/reject-invitation',
    config: { access: access.recipient, failures: ANSWERING },
    schema: {
      operationId: 'rejectInvitation',
      summary: 'Reject an invitation',
      body: ById,
      response: { 200: RejectedInvitation },
    },
    handler: async (request) => ({
      invitation: await rejectInvitation(request.kernel, request.caller, request.body.invitationId),
      member: null,
    }),
  })
  app.route({
    method: 'GET',
    url: '/organization/get-invitation',
    config: {
      whileImpersonating: true,
      access: access.recipientOr('invitation: create'),
      failures: ['INVITATION_NOT_FOUND', 'EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION'],
    },
    schema: {
      operationId: 'getInvitation',
      summary: 'A pending invitation',
      querystring: Type.Object({ id: InvitationId }),
      response: { 200: InvitationView },
    },
    handler: (request) => getInvitation(kernel, request.caller, request.query.id),
  })
  app.route({
    method: 'GET',
    url: '/organization/list-invitations',
    config: {
      whileImpersonating: true,
      access: access.memberWith(TO.INVITE),
      failures: NAMING,
    },
    schema: {
      operationId: 'listInvitations',
      summary: 'The invitations of an organization, newest first',
      querystring: Type.Object({ ...Named, ...ListPage }),
      response: { 200: Type.Array(Invitation) },
    },
    handler: (request) => invitationsOf(kernel, request.caller, request.query, pageOf(request.query)),
  })
  app.route({
    method: 'GET',
    url: '/organization/list-user-invitations',
    config: {
      whileImpersonating: true,
      access: access.signedIn,
      failures: ['EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION'],
    },
    schema: {
      operationId: 'listUserInvitations',
      summary: 'Pending invitations to the address of the user',
      querystring: Type.Object(ListPage),
      response: { 200: Type.Array(InvitationView) },
    },
    handler: (request) => invitationsTo(kernel, request.caller, pageOf(request.query)),
  })
}
