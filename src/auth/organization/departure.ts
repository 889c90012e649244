import { hasProvenEmail, type User } from '#identity/users.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { deleteInvitationsTo } from './invitation-store.ts'
import { deleteOrganizations, listDepartures, lockOrganizationsOf } from './store.ts'

/**
 * Before a user is deleted, whose row is locked. Organizations without other members go with the user, and so do invitations to a proven
 * address; those to an unproven one may be another person's. An organization with other members needs another owner first: nobody could
 * manage it, and nobody chose a successor.
 */
export async function leaveOrganizations(kernel: Kernel, user: User): Promise<void> {
  await lockOrganizationsOf(kernel.db, user)
  const departures = await listDepartures(kernel.db, user.id)
  if (departures.some(({ isAlone, isOnlyOwner }) => isOnlyOwner && !isAlone))
    throw fail('SOLE_OWNER_OF_ORGANIZATION')
  const deleted = departures.filter(({ isAlone }) => isAlone).map(({ id }) => id)
  if (deleted.length > 0) await deleteOrganizations(kernel.db, deleted)
  for (const organizationId of deleted) {
    await recordAct(kernel, 'organization.deleted', { targetId: organizationId, organizationId })
    await emit(kernel, 'auth_organization_deleted', { organization_id: organizationId })
  }
  for (const { id: organizationId, isAlone } of departures) {
    if (isAlone) continue
    await recordAct(kernel, 'member.removed', { targetId: user.id, organizationId })
    await emit(kernel, 'auth_member_removed', { organization_id: organizationId, user_id: user.id })
  }
  if (hasProvenEmail(user)) await deleteInvitationsTo(kernel.db, user.email)
}
