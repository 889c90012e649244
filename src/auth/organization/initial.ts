import { hasShownFactor } from '#identity/shown.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { lockInitialOrganization } from './store.ts'

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
