import { Type } from 'typebox'
import { IMAGE_MAX } from '#identity/images.ts'
import { NAME_MAX } from '#identity/names.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, Timestamp } from '#kernel/http/schemas.ts'

/** Ids in requests. A text that is no id names nothing: the failure is that of an unknown one. */
const GivenId = (more: object = {}) => Type.String({ maxLength: 64, ...more })
const OrganizationId = GivenId({ description: 'Default: the active organization' })
/** With or without the secret that its mail has after a point. */
export const InvitationId = GivenId({ maxLength: 128 })
export const MemberId = GivenId()
export const UserId = GivenId()
export const Slug = Type.String({ maxLength: 256, examples: ['acme'] })

/** How requests name an organization. */
export const Named = { organizationId: Type.Optional(OrganizationId) }
export const NamedById = { organizationId: GivenId() }
export const NamedByIdOrSlug = {
  ...Named,
  organizationSlug: Type.Optional(Slug),
}

/** A page of a list. The largest offset bounds the rows that are read and not sent. */
export const ListPage = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, default: 0 })),
}
export const pageOf = ({ limit = 100, offset = 0 }: { limit?: number; offset?: number }) => ({
  limit,
  offset,
})

/** As typed: trimmed and checked later. */
export const OrganizationName = Type.String({ maxLength: 8 * NAME_MAX, examples: ['Acme'] })
const Logo = Type.Optional(Nullable(Type.String({ maxLength: 2 * IMAGE_MAX })))
const Metadata = Type.Optional(
  Type.Unsafe<object | string | null>({
    ...named('OrganizationMetadata'),
    type: ['object', 'string', 'null'],
    description: 'An object, or the JSON text of one',
  }),
)
export const OrganizationFields = { logo: Logo, metadata: Metadata }
export const OrganizationChange = Type.Object({
  name: Type.Optional(OrganizationName),
  slug: Type.Optional(Slug),
  ...OrganizationFields,
  requireTwoFactor: Type.Optional(
    Type.Boolean({
      description:
        'Whether the organization becomes active only in sessions with a second factor; for owners',
    }),
  ),
})

export const GivenRole = Type.Unsafe<string | string[]>({
  type: ['string', 'array'],
  items: { type: 'string' },
  maxLength: 1_024,
  maxItems: 32,
  description: 'One role or several: a list, or joined by commas',
  examples: ['member'],
})

export const Permissions = Type.Record(
  Type.String(),
  Type.Array(Type.String({ maxLength: 64 }), { maxItems: 64 }),
  { description: 'Resource → actions', examples: [{ member: ['update'] }] },
)

const ORGANIZATION = {
  id: Id,
  name: Type.String(),
  slug: Type.String(),
  logo: Nullable(Type.String()),
  metadata: Type.String({ description: 'JSON text of an object' }),
  requireTwoFactor: Type.Boolean(),
  createdAt: Timestamp,
}
const MEMBER = {
  id: Id,
  organizationId: Id,
  userId: Id,
  role: Type.String({ description: 'Several are joined by commas' }),
  createdAt: Timestamp,
}
const INVITATION = {
  id: Id,
  organizationId: Id,
  inviterId: Id,
  email: Type.String(),
  role: Type.String(),
  status: Type.Unsafe<string>({ type: 'string', enum: ['pending', 'accepted', 'rejected', 'canceled'] }),
  expiresAt: Timestamp,
  createdAt: Timestamp,
}

export const Organization = Type.Object(ORGANIZATION, named('Organization'))
export const OrganizationOrNull = Nullable(
  Type.Object(ORGANIZATION, { ...named('Organization'), description: 'Null: none is active' }),
)
export const Member = Type.Object(MEMBER, named('Member'))
const MemberUser = Type.Object(
  {
    id: Id,
    name: Type.String(),
    email: Type.String(),
    emailVerified: Type.Boolean(),
    image: Nullable(Type.String()),
  },
  named('MemberUser'),
)
export const MemberWithUser = Type.Object({ ...MEMBER, user: MemberUser }, named('MemberWithUser'))
export const Invitation = Type.Object(INVITATION, named('Invitation'))
export const InvitationView = Type.Object(
  {
    ...INVITATION,
    organizationName: Type.String(),
    organizationSlug: Type.String(),
    inviterEmail: Nullable(Type.String({ description: 'Null: the inviter has not proven the address' })),
  },
  named('InvitationView'),
)

export const CreatedOrganization = Type.Object(
  { ...ORGANIZATION, members: Type.Array(Member) },
  named('CreatedOrganization'),
)
export const FullOrganization = Nullable(
  Type.Object(
    { ...ORGANIZATION, members: Type.Array(MemberWithUser), invitations: Type.Array(Invitation) },
    {
      ...named('FullOrganization'),
      description: 'Null: none is active. `invitations` is empty for members who may not invite',
    },
  ),
)
export const MemberList = Type.Object({
  members: Type.Array(MemberWithUser),
  total: Type.Integer(),
  nextCursor: Nullable(Id),
})
export const RemovedMember = Type.Object({ member: MemberWithUser })
export const LeftMember = Type.Object({ ...MEMBER, message: Type.String() })
export const ChangedMember = Type.Object({ ...MEMBER, member: Member })
export const CanceledInvitation = Type.Object({ ...INVITATION, message: Type.String() })
export const AcceptedInvitation = Type.Object({ invitation: Invitation, member: Member })
export const RejectedInvitation = Type.Object({ invitation: Invitation, member: Type.Null() })
export const Role = Type.Object({ role: Type.String() })
