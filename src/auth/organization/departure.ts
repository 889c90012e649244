import { tell } from '#identity/tell.ts'
import { hasProvenEmail, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { deleteInvitationsTo } from './invitation-store.ts'
import { deleteOrganizations, listDepartures, lockOrganizationsOf } from './store.ts'

/**
 * Before a user is deleted, whose row is locked. Organizations without other members go with the user, and so do invitations to a proven
 * address; those to an unproven one may be another person's. An organization with other members needs another owner first: nobody could
 * manage it, and nobody chose a successor.
 */
export async function leaveOrganizations(kernel: Kernel, user: User): Promise<void> {
  await lockOrganizationsOf(kernel, user)
  const departures = await listDepartures(kernel.db, user.id)
  if (departures.some(({ isAlone, isOnlyOwner }) => isOnlyOwner && !isAlone))
    throw fail('SOLE_OWNER_OF_ORGANIZATION')
  const deleted = departures.filter(({ isAlone }) => isAlone).map(({ id }) => id)
  if (deleted.length > 0) await deleteOrganizations(kernel.db, deleted)
  for (const organizationId of deleted) {
    await tell(kernel, 'organization.deleted', { targetId: organizationId, organizationId })
  }
  for (const { id: organizationId, isAlone } of departures) {
    if (isAlone) continue
    await tell(kernel, 'member.removed', { targetId: user.id, organizationId })
  }
  if (hasProvenEmail(user)) await deleteInvitationsTo(kernel.db, user.email)
}
