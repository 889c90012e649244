import { act } from '#identity/act.ts'
import { coversPermissions } from '#identity/permissions.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { byAdmin } from '../admin/act-on-user.ts'
import { type AdminPermission, TO } from '../admin/permissions.ts'
import type { Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { type Fields, fieldsFrom } from './fields.ts'
import { endInvitation, findInvitation } from './invitation-store.ts'
import { findMember } from './member-store.ts'
import { giveRole, removeUnlessLastOwner } from './members.ts'
import { applyChange, removeOrganization, withFreeSlug } from './organization.ts'
import { acceptableRoles, expectMayGive } from './roles.ts'
import { acceptableInvite, type Invite, recordInvitation, sendInvitation } from './sent-invitations.ts'
import {
  type Invitation,
  listActiveUsers,
  lockOrganization,
  type Member,
  type Organization,
} from './store.ts'

type ActOnOrganization = {
  readonly permission: AdminPermission
  readonly organizationId: string
  readonly lock?: 'update' | 'no key update'
  /** Ids of users whose sessions or memberships the work changes. */
  readonly others?: readonly string[]
}
type Held = {
  readonly organization: Organization
  readonly admin: User
  readonly others: ReadonlyMap<string, User>
}

/** As for a member (membership.ts), by an administrator of the service, who need not be one. */
const actOnOrganization = <T>(
  kernel: Kernel,
  caller: Caller,
  { permission, organizationId, lock, others = [] }: ActOnOrganization,
  work: (kernel: Kernel, held: Held) => Promise<T>,
): Promise<T> =>
  act(kernel, { ...byAdmin(caller, permission), others }, async (kernel, { user: admin, others }) => {
    const organization = UUID.test(organizationId)
      ? await lockOrganization(kernel, organizationId, lock)
      : undefined
    if (organization === undefined) throw fail('ORGANIZATION_NOT_FOUND')
    return work(kernel, { organization, admin, others })
  })

export async function changeOrganizationAsAdmin(
  kernel: Kernel,
  caller: Caller,
  organizationId: string,
  asked: Fields,
): Promise<Organization> {
  const change = fieldsFrom(asked)
  if (Object.keys(change).length === 0) throw fail('NO_FIELDS_TO_UPDATE')
  const others = change.requireTwoFactor === true ? await activeUsers(kernel, organizationId) : []
  const acting = { permission: TO.UPDATE_ORGANIZATION, organizationId, others }
  return withFreeSlug('ORGANIZATION_SLUG_ALREADY_TAKEN', () =>
    actOnOrganization(kernel, caller, acting, (kernel, { organization }) =>
      applyChange(kernel, organization, change),
    ),
  )
}

export async function deleteOrganizationAsAdmin(
  kernel: Kernel,
  caller: Caller,
  organizationId: string,
): Promise<void> {
  const others = await activeUsers(kernel, organizationId)
  const acting = { permission: TO.DELETE_ORGANIZATION, organizationId, lock: 'update', others } as const
  await actOnOrganization(kernel, caller, acting, (kernel, { organization }) =>
    removeOrganization(kernel, organization),
  )
}

const activeUsers = async ({ db }: Kernel, organizationId: string): Promise<readonly string[]> =>
  UUID.test(organizationId) ? listActiveUsers(db, organizationId) : []

type NamedMember = { readonly organizationId: string; readonly memberId: string }

export async function changeMemberRoleAsAdmin(
  kernel: Kernel,
  caller: Caller,
  { role: given, ...named }: NamedMember & { readonly role: string | readonly string[] },
): Promise<Member> {
  const role = acceptableRoles(kernel, given)
  return actOnMember(kernel, caller, named, (kernel, member, admin) => {
    expectMayGive(kernel, admin, role)
    return giveRole(kernel, member, role)
  })
}

export const removeMemberAsAdmin = (kernel: Kernel, caller: Caller, named: NamedMember): Promise<void> =>
  actOnMember(kernel, caller, named, removeUnlessLastOwner)

/** As on users, nobody acts on a member who has a permission of the service that they lack. */
async function actOnMember<T>(
  kernel: Kernel,
  caller: Caller,
  { organizationId, memberId }: NamedMember,
  work: (kernel: Kernel, member: Member, admin: User) => Promise<T>,
): Promise<T> {
  const isNamed = UUID.test(organizationId) && UUID.test(memberId)
  const target = isNamed ? await findMember(kernel.db, organizationId, { id: memberId }) : undefined
  const others = target === undefined ? [] : [target.userId]
  const acting = { permission: TO.MANAGE_MEMBERS, organizationId, others }
  return actOnOrganization(kernel, caller, acting, async (kernel, { admin, organization, others }) => {
    // As of now, with the locks.
    const member = target && (await findMember(kernel.db, organization.id, { id: target.id }))
    const user = member && others.get(member.userId)
    if (member === undefined || user === undefined) throw fail('MEMBER_NOT_FOUND')
    if (!coversPermissions(kernel, admin, user)) throw fail(TO.MANAGE_MEMBERS.refusal)
    return work(kernel, member, admin)
  })
}

/** The invitation is in the name of the administrator, and valid as long as that one may invite. */
export async function inviteAsAdmin(
  kernel: Kernel,
  caller: Caller,
  { organizationId, ...asked }: Invite & { readonly organizationId: string },
): Promise<Invitation> {
  const invite = acceptableInvite(kernel, asked)
  const acting = { permission: TO.MANAGE_MEMBERS, organizationId }
  return actOnOrganization(kernel, caller, acting, (kernel, { organization, admin: inviter }) =>
    sendInvitation(kernel, invite, {
      ...{ organization, inviter, sessionId: caller.session.id },
      covers: () => true,
    }),
  )
}

export async function cancelInvitationAsAdmin(
  kernel: Kernel,
  caller: Caller,
  id: string,
): Promise<Invitation> {
  const found = UUID.test(id) ? await findInvitation(kernel.db, id, kernel.now()) : undefined
  if (found === undefined) throw fail('INVITATION_NOT_FOUND')
  const acting = { permission: TO.MANAGE_MEMBERS, organizationId: found.organizationId }
  return actOnOrganization(kernel, caller, acting, async (kernel) => {
    const canceled = await endInvitation(kernel.db, { id }, 'canceled', kernel.now())
    if (canceled === undefined) throw fail('INVITATION_NOT_FOUND')
    await recordInvitation(kernel, 'invitation.canceled', canceled)
    return canceled
  })
}
