import type { Kernel } from '#kernel/kernel.ts'
import { adminsOf, lockAdmins } from './roles.ts'
import { findTicket, issueTicket } from './tickets.ts'
import { isTokenShaped, tokenHash } from './tokens.ts'

const PURPOSE = 'first-admin'
const LIFETIME = 600_000

/**
 * Issues the token of the link that makes its bearer the first admin, in place of an older one. Undefined when there is an admin. To be called
 * in a transaction.
 */
export async function offerFirstAdmin(
  kernel: Pick<Kernel, 'db' | 'now' | 'random' | 'config'>,
): Promise<string | undefined> {
  await lockAdmins(kernel.db)
  if ((await adminsOf(kernel).limit(1).executeTakeFirst()) !== undefined) return undefined
  await kernel.db.deleteFrom('verification').where('purpose', '=', PURPOSE).execute()
  return issueTicket(kernel, PURPOSE, {
    ...{ userId: null, sessionId: null, address: null },
    lifetime: LIFETIME,
    payload: {},
  })
}

/** Whether the token is open, before anything is spent on its bearer. */
export async function isFirstAdminOffered(kernel: Kernel, token: string): Promise<boolean> {
  const found = await findTicket(kernel, [PURPOSE], token)
  return found !== undefined && !found.expired
}

/** Redeems the token while there is no admin. In one statement behind the lock, so that of any number of bearers one becomes admin. */
export async function redeemFirstAdmin(kernel: Kernel, token: string): Promise<boolean> {
  const { db, now } = kernel
  if (!isTokenShaped(token)) return false
  await lockAdmins(db)
  const redeemed = await db
    .deleteFrom('verification')
    .where('purpose', '=', PURPOSE)
    .where('valueHash', '=', tokenHash(token))
    .where('expiresAt', '>', now())
    .where(({ not, exists }) => not(exists(adminsOf(kernel))))
    .returning('valueHash')
    .executeTakeFirst()
  return redeemed !== undefined
}
