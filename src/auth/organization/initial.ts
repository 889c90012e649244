import { type RawBuilder, sql } from 'kysely'
import { hasShownFactor } from '#identity/shown.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Db } from '#kernel/db/connect.ts'
import { chosenOrganization, updateNeverActive } from './store.ts'

/**
 * The organization that is active in a new session of a user, whose row is locked, as a part of the statement that starts it. One that
 * requires a second factor is not, unless the session has shown a factor; then none is: another organization could be taken for it.
 */
export function initialOrganization(
  { auth: { organization } }: Pick<Config, 'auth'>,
  userId: string,
  shown: readonly string[],
): RawBuilder<string | null> {
  const { initial } = organization
  return initial === 'none' ? sql`null` : chosenOrganization(userId, initial, hasShownFactor(shown))
}

/** For a user whose row is locked: with `last`, a new session has no organization until one is made active. The memberships stay. */
export const forgetLastOrganization = (db: Db, userId: string): Promise<void> => updateNeverActive(db, userId)
