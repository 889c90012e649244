import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { tokenHash } from './tokens.ts'

/** What a one-time token is for; a token of one purpose is worthless for another. */
export type TicketPurpose = 'verify-email'

/** A one-time token for a link, valid for `life` milliseconds; only its hash is stored. */
export async function issueTicket(
  kernel: Kernel,
  ticket: { readonly purpose: TicketPurpose; readonly userId: string; readonly life: number },
): Promise<string> {
  const token = randomToken(kernel.random)
  const now = kernel.now()
  await kernel.db
    .insertInto('verification')
    .values({
      valueHash: tokenHash(token),
      purpose: ticket.purpose,
      userId: ticket.userId,
      createdAt: now,
      expiresAt: new Date(now.getTime() + ticket.life),
    })
    .execute()
  return token
}

/** Redeems a token: of any number of requests at once, one gets it. Undefined when it is unknown or used. */
export async function redeemTicket(
  kernel: Kernel,
  purpose: TicketPurpose,
  token: string,
): Promise<{ readonly userId: string; readonly expired: boolean } | undefined> {
  const found = await kernel.db
    .deleteFrom('verification')
    .where('valueHash', '=', tokenHash(token))
    .where('purpose', '=', purpose)
    .returning(['userId', 'expiresAt'])
    .executeTakeFirst()
  return found === undefined ? undefined : { userId: found.userId, expired: found.expiresAt <= kernel.now() }
}

/** At most `batch` tickets that ran out; returns how many. */
export async function deleteExpiredTickets(db: Db, now: Date, batch: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('verification')
    .where('valueHash', 'in', (of) =>
      of.selectFrom('verification').select('valueHash').where('expiresAt', '<=', now).limit(batch),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
