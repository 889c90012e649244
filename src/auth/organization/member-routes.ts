import { Type } from 'typebox'
import { OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { OrganizationAccess } from './access.ts'
import {
  changeMemberRole,
  getActiveMember,
  getMemberRole,
  leaveOrganization,
  membersOf,
  removeMember,
} from './members.ts'
import { TO } from './roles.ts'
import {
  ChangedMember,
  GivenRole,
  LeftMember,
  ListPage,
  MemberId,
  MemberList,
  MemberWithUser,
  Named,
  NamedById,
  NamedByIdOrSlug,
  pageOf,
  RemovedMember,
  Role,
  UserId,
} from './schemas.ts'

const NAMING = ['USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION', 'NO_ACTIVE_ORGANIZATION']

export function memberRoutes(app: App, kernel: Kernel, access: OrganizationAccess): void {
  app.route({
    method: 'GET',
    url: '/organization/get-active-member',
    config: { whileImpersonating: true, access: access.member, failures: NAMING },
    schema: {
      operationId: 'getActiveMember',
      summary: "The user's place in the active organization",
      response: { 200: MemberWithUser },
    },
    handler: (request) => getActiveMember(kernel, request.caller),
  })
  app.route({
    method: 'GET',
    url: '/organization/get-active-member-role',
    config: { whileImpersonating: true, access: access.member, failures: [...NAMING, 'MEMBER_NOT_FOUND'] },
    schema: {
      operationId: 'getActiveMemberRole',
      summary: "The user's roles in an organization, or another member's",
      querystring: Type.Object({
        ...NamedByIdOrSlug,
        userId: Type.Optional({ ...UserId, description: 'Another member; default: the user' }),
      }),
      response: { 200: Role },
    },
    handler: async (request) => ({ role: await getMemberRole(kernel, request.caller, request.query) }),
  })
  app.route({
    method: 'GET',
    url: '/organization/list-members',
    config: { whileImpersonating: true, access: access.member, failures: NAMING },
    schema: {
      operationId: 'listMembers',
      summary: 'The members of an organization, a page at a time',
      querystring: Type.Object({
        ...NamedByIdOrSlug,
        ...ListPage,
        cursor: Type.Optional(
          Type.String({ format: 'uuid', description: '`nextCursor` of the page before' }),
        ),
        sortBy: Type.Optional(OneOf(['createdAt'])),
        sortDirection: Type.Optional(OneOf(['asc', 'desc'], { default: 'asc' })),
        filterField: Type.Optional(OneOf(['userId'])),
        filterOperator: Type.Optional(OneOf(['eq'])),
        filterValue: Type.Optional(Type.String({ format: 'uuid' })),
      }),
      response: { 200: MemberList },
    },
    handler: (request) => {
      const { query } = request
      const { sortDirection: direction = 'asc', cursor: after, filterValue: userId } = query
      return membersOf(kernel, request.caller, query, { ...pageOf(query), direction, after, userId })
    },
  })
  app.route({
    method: 'POST',
    url: '/organization/remove-member',
    config: {
      access: access.memberWith(TO.REMOVE_MEMBER),
      failures: [...NAMING, 'MEMBER_NOT_FOUND', 'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER'],
    },
    schema: {
      operationId: 'removeMember',
      summary: 'Remove a member',
      body: Type.Object({
        ...Named,
        memberIdOrEmail: Type.String({
          maxLength: 320,
          description: 'Id of the member, or email of the user',
        }),
      }),
      response: { 200: RemovedMember },
    },
    handler: async (request) => ({
      member: await removeMember(request.kernel, request.caller, request.body, request.body.memberIdOrEmail),
    }),
  })
  app.route({
    method: 'POST',
    url: '/organization/update-member-role',
    config: {
      access: access.memberWith(TO.UPDATE_MEMBER),
      failures: [
        ...NAMING,
        'MEMBER_NOT_FOUND',
        'ROLE_NOT_FOUND',
        'EMAIL_NOT_VERIFIED',
        'YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER',
      ],
    },
    schema: {
      operationId: 'updateMemberRole',
      summary: 'Give a member other roles',
      body: Type.Object({ ...Named, memberId: MemberId, role: GivenRole }),
      response: { 200: ChangedMember },
    },
    handler: async (request) => {
      const member = await changeMemberRole(request.kernel, request.caller, request.body, request.body)
      return { ...member, member }
    },
  })
  app.route({
    method: 'POST',
    url: '/organization/leave',
    config: {
      access: access.member,
      failures: [
        'USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION',
        'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER',
      ],
    },
    schema: {
      operationId: 'leaveOrganization',
      summary: 'Leave an organization',
      body: Type.Object(NamedById),
      response: { 200: LeftMember },
    },
    handler: async (request) => ({
      ...(await leaveOrganization(request.kernel, request.caller, request.body.organizationId)),
      message: 'You have left the organization',
    }),
  })
}
