import { hasShownFactor } from '#identity/shown.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { lockInitialOrganization, updateNeverActive } from './store.ts'

/**
 * The organization that is active in a new session of a user, whose row is locked. One that requires a second factor is not, unless the
 * session has shown a factor; then none is: another organization could be taken for it.
 */
export async function initialOrganization(
  { db, config }: Pick<Kernel, 'db' | 'config'>,
  userId: string,
  shown: readonly string[],
): Promise<string | null> {
  const { initial } = config.auth.organization
  const found = initial === 'none' ? undefined : await lockInitialOrganization(db, userId, initial)
  if (found === undefined || (found.requireTwoFactor && !hasShownFactor(shown))) return null
  return found.organizationId
}

/** For a user whose row is locked: with `last`, a new session has no organization until one is made active. The memberships stay. */
export const forgetLastOrganization = (db: Db, userId: string): Promise<void> => updateNeverActive(db, userId)
