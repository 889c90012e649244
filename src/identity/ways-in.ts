import { sql } from 'kysely'
import type { Kernel } from '#kernel/kernel.ts'
import type { User } from './users.ts'

/**
 * Is this the user's only way of signing in? `id` is that of its row: an account or a passkey. Every kind of way in is one branch of the
 * statement: a password or an account at a provider that is configured, and a passkey.
 *
 * The user's row has to be locked (proof.ts), as it is by every verb that removes a way in: then no other one can go before this
 * transaction ends.
 */
export async function isLastWayIn(
  { db, config }: Kernel,
  { id: userId }: User,
  id: string,
): Promise<boolean> {
  if (!db.isTransaction) throw new Error('a way in is removed in the transaction that has locked the user')
  const usable = ['credential', ...Object.keys(config.auth.social.providers)]
  const { rows } = await sql<{ isLast: boolean }>`
    select not exists (
      select from service.account where user_id = ${userId} and id <> ${id} and provider_id = any (${usable}::text[])
      union all
      select from service.passkey where user_id = ${userId} and id <> ${id}
    ) as is_last`.execute(db)
  return rows[0]?.isLast ?? true
}
