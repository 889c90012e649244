import { act } from '#identity/act.ts'
import { coversPermissions, isPermitted, type Permissions } from '#identity/permissions.ts'
import { tell, tellChange } from '#identity/tell.ts'
import { findUser, type User } from '#identity/users.ts'
import { changedFields } from '#kernel/audit/changed-fields.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID, uuidv7 } from '#kernel/random.ts'
import { bySession, type Caller } from '../door/access.ts'
import { fail } from '../errors.ts'
import { isRestricted } from '../two-factor/restricted.ts'
import { type Fields, fieldsFrom, slugFrom } from './fields.ts'
import { listInvitations } from './invitation-store.ts'
import { insertMember, listMembers, type MemberWithUser } from './member-store.ts'
import {
  actInOrganization,
  expectKey,
  expectMembership,
  keyOf,
  type NamedOrganization,
} from './membership.ts'
import { isMemberPermitted, isOwner, OWNER, TO } from './roles.ts'
import {
  deactivateEverywhere,
  deactivateWithoutFactor,
  deleteOrganizations,
  hasFactor,
  type Invitation,
  insertOrganization,
  isInOrganizations,
  isSlugTaken,
  listActiveUsers,
  listOrganizations,
  type Member,
  type Organization,
  type OrganizationChange,
  updateActiveOrganization,
  updateOrganization,
} from './store.ts'

type CreateOrganization = Pick<Fields, 'logo' | 'metadata'> & {
  readonly name: string
  readonly slug: string
  /** The owner, if it is not the caller. */
  readonly userId?: string | undefined
  readonly keepCurrentActiveOrganization?: boolean | undefined
}

type Created = Organization & { readonly members: Member[] }

/** Creates an organization with the caller as its owner, or for an admin with another user. */
export async function createOrganization(
  kernel: Kernel,
  caller: Caller,
  { userId = caller.user.id, keepCurrentActiveOrganization = false, ...asked }: CreateOrganization,
): Promise<Created> {
  const fields = fieldsFrom(asked)
  const isOwn = userId === caller.user.id
  // A caller without the permission locks no one's row.
  if (!isOwn) expectMayCreateFor(kernel, caller.user)
  if (!UUID.test(userId)) throw fail('USER_NOT_FOUND')
  return withFreeSlug('ORGANIZATION_ALREADY_EXISTS', () =>
    act(kernel, { ...bySession(caller), others: isOwn ? [] : [userId] }, async (kernel, { user }) => {
      if (user.isAnonymous) throw fail('USER_IS_ANONYMOUS')
      if (!isOwn) await expectAdmin(kernel, caller, user, userId)
      const created = await insertWithOwner(kernel, fields, userId)
      if (isOwn && !keepCurrentActiveOrganization)
        await updateActiveOrganization(kernel, caller.session.id, created.id)
      return created
    }),
  )
}

const mayNotCreate = () => fail('YOU_ARE_NOT_ALLOWED_TO_CREATE_A_NEW_ORGANIZATION')

function expectMayCreateFor(kernel: Kernel, user: User): void {
  if (!isPermitted(kernel, user, { user: ['update'] })) throw mayNotCreate()
}

/** With both rows locked. As with every verb on users, nobody acts on a user with more permissions. */
async function expectAdmin(kernel: Kernel, caller: Caller, user: User, ownerId: string): Promise<void> {
  if (await isRestricted(kernel, user, caller.session)) throw fail('TWO_FACTOR_REQUIRED')
  expectMayCreateFor(kernel, user)
  const owner = await findUser(kernel.db, 'id', ownerId)
  if (owner === undefined) throw fail('USER_NOT_FOUND')
  if (!coversPermissions(kernel, user, owner)) throw mayNotCreate()
  // As it is stored: the request may spell the id in capitals.
  if (owner.isAnonymous) throw fail('USER_IS_ANONYMOUS')
}

async function insertWithOwner(
  kernel: Kernel,
  { name = '', slug = '', logo = null, metadata = '{}' }: OrganizationChange,
  userId: string,
): Promise<Created> {
  const { db, random, config } = kernel
  if (await isInOrganizations(db, userId, config.auth.organization.max_per_user))
    throw fail('YOU_HAVE_REACHED_THE_MAXIMUM_NUMBER_OF_ORGANIZATIONS')
  const createdAt = kernel.now()
  const id = uuidv7(createdAt, random)
  const organization = await insertOrganization(db, { id, name, slug, logo, metadata, createdAt })
  const member = { id: uuidv7(createdAt, random), organizationId: id, userId, role: OWNER, createdAt }
  const created = { ...organization, members: [await insertMember(db, member)] }
  await tell(kernel, 'organization.created', {
    targetId: id,
    organizationId: id,
    details: { owner: userId },
  })
  return created
}

/** The unique constraint decides about slugs. */
export async function withFreeSlug<T>(code: Parameters<typeof fail>[0], work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw isConflict(error, 'organization_slug_key') ? fail(code) : error
  }
}

/** Changes the given fields. Only owners change whether the organization requires a second factor. */
export async function changeOrganization(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
  asked: Fields,
): Promise<Organization> {
  const change = fieldsFrom(asked)
  if (Object.keys(change).length === 0) throw fail('NO_FIELDS_TO_UPDATE')
  const { organization } = await expectMembership(kernel, caller.user.id, expectKey(caller, named))
  const key = { id: organization.id }
  // Their sessions may change.
  const others = change.requireTwoFactor === true ? await listActiveUsers(kernel.db, key.id) : []
  return withFreeSlug('ORGANIZATION_SLUG_ALREADY_TAKEN', () =>
    actInOrganization(kernel, caller, { key, to: TO.UPDATE, others }, async (kernel, membership) => {
      if (change.requireTwoFactor !== undefined && !isOwner(membership.member.role))
        throw fail(TO.UPDATE.refusal)
      return applyChange(kernel, membership.organization, change)
    }),
  )
}

/** In a transaction that holds the organization, and the users whose sessions may change. */
export async function applyChange(
  kernel: Kernel,
  organization: Organization,
  change: OrganizationChange,
): Promise<Organization> {
  const { id } = organization
  const changed = await updateOrganization(kernel.db, id, change, kernel.now())
  const fields = changedFields(organization, changed, change)
  const act = { targetId: id, organizationId: id, details: { fields } }
  await tellChange(kernel, 'organization.updated', fields, act)
  if (changed.requireTwoFactor) await deactivateWithoutFactor(kernel.db, id)
  return changed
}

/** Deletes the organization with members and invitations. */
export async function deleteOrganization(
  kernel: Kernel,
  caller: Caller,
  organizationId: string,
): Promise<string> {
  const key = { id: organizationId }
  // A stranger learns nothing, and locks no one's row.
  const { organization } = await expectMembership(kernel, caller.user.id, key)
  // Their sessions change.
  const others = await listActiveUsers(kernel.db, organizationId)
  await actInOrganization(kernel, caller, { key, to: TO.DELETE, lock: 'update', others }, (kernel) =>
    removeOrganization(kernel, organization),
  )
  return organization.id
}

/** In a transaction that holds the organization, and the users whose sessions change. */
export async function removeOrganization(kernel: Kernel, { id }: Pick<Organization, 'id'>): Promise<void> {
  await deactivateEverywhere(kernel.db, [id])
  await deleteOrganizations(kernel.db, [id])
  await tell(kernel, 'organization.deleted', { targetId: id, organizationId: id })
}

/** Makes an organization active in the caller's session, or none. Returns it. */
export async function setActiveOrganization(
  kernel: Kernel,
  caller: Caller,
  { organizationId, organizationSlug }: { organizationId?: string | null; organizationSlug?: string | null },
): Promise<Organization | null> {
  const none = organizationId === null || (organizationId === undefined && organizationSlug === null)
  const key = none
    ? undefined
    : keyOf(caller, {
        organizationId: organizationId ?? undefined,
        organizationSlug: organizationSlug ?? undefined,
      })
  return key === undefined
    ? act(kernel, bySession(caller), async (kernel) => {
        await updateActiveOrganization(kernel, caller.session.id, null)
        return null
      })
    : actInOrganization(kernel, caller, { key, lock: 'share' }, async (kernel, { organization }) => {
        if (!(await mayActivate(kernel, organization, caller))) throw fail('TWO_FACTOR_REQUIRED')
        await updateActiveOrganization(kernel, caller.session.id, organization.id)
        return organization
      })
}

/**
 * An organization may require a second factor of the sessions in which it is active (auth.md 7). In the transaction of the caller, which
 * has locked the user, and the admin of an impersonated session.
 */
export const mayActivate = async (
  { db }: Kernel,
  { requireTwoFactor }: Organization,
  { session }: Pick<Caller, 'session'>,
): Promise<boolean> => !requireTwoFactor || (await hasFactor(db, session.id))

/** The organization that is named, else the active one; null without either. */
export async function getOrganization(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
): Promise<Organization | null> {
  const key = keyOf(caller, named)
  return key === undefined ? null : (await expectMembership(kernel, caller.user.id, key)).organization
}

type FullOrganization = Organization & {
  readonly members: MemberWithUser[]
  /** Empty for members who may not invite. */
  readonly invitations: Invitation[]
}

/** The same with its first members and its newest invitations. */
export async function getFullOrganization(
  kernel: Kernel,
  caller: Caller,
  { membersLimit = 100, ...named }: NamedOrganization & { readonly membersLimit?: number | undefined },
): Promise<FullOrganization | null> {
  const key = keyOf(caller, named)
  if (key === undefined) return null
  const { organization, member } = await expectMembership(kernel, caller.user.id, key)
  const mayInvite = isMemberPermitted(kernel, member.role, { invitation: ['create'] })
  const [members, invitations] = await Promise.all([
    listMembers(kernel.db, organization.id, { limit: membersLimit }),
    mayInvite ? listInvitations(kernel.db, organization.id, { limit: 100, offset: 0 }) : [],
  ])
  return { ...organization, members, invitations }
}

export const organizationsOf = (
  { db }: Kernel,
  { user }: Caller,
  page: { readonly limit: number; readonly offset: number },
): Promise<Organization[]> => listOrganizations(db, user.id, page)

export async function checkSlug({ db }: Kernel, slug: string): Promise<void> {
  if (await isSlugTaken(db, slugFrom(slug))) throw fail('ORGANIZATION_SLUG_ALREADY_TAKEN')
}

/** Whether the caller's role in the organization allows all of this. For the active organization the session knows the role. */
export async function hasPermission(
  kernel: Kernel,
  caller: Caller,
  named: NamedOrganization,
  asked: Permissions,
): Promise<boolean> {
  const key = expectKey(caller, named)
  const isActive = 'id' in key && key.id === caller.session.activeOrganizationId
  const held = isActive ? caller.organizationRole : undefined
  return isMemberPermitted(
    kernel,
    held ?? (await expectMembership(kernel, caller.user.id, key)).member.role,
    asked,
  )
}
