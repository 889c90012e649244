import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { isTokenShaped, tokenHash } from './tokens.ts'

/** What a one-time token is for, and what it carries; a token of one purpose is worthless for another. */
export type TicketPayload = {
  /** `browser`: hash of a cookie that only the browser has which set the password (email/email.ts). */
  'verify-email': { readonly browser?: string }
  'reset-password': Record<string, never>
  'confirm-change-email': { readonly newEmail: string; readonly callbackURL?: string }
  'change-email': { readonly newEmail: string }
  'delete-user': Record<string, never>
}
export type TicketPurpose = keyof TicketPayload

/** A one-time token for a link, valid for `life` milliseconds; only its hash is stored. */
export async function issueTicket<P extends TicketPurpose>(
  kernel: Kernel,
  purpose: P,
  ticket: { readonly userId: string; readonly life: number; readonly payload: TicketPayload[P] },
): Promise<string> {
  const token = randomToken(kernel.random)
  const now = kernel.now()
  await kernel.db
    .insertInto('verification')
    .values({
      valueHash: tokenHash(token),
      purpose,
      userId: ticket.userId,
      payload: JSON.stringify(ticket.payload),
      createdAt: now,
      expiresAt: new Date(now.getTime() + ticket.life),
    })
    .execute()
  return token
}

export type Ticket<P extends TicketPurpose> = {
  readonly purpose: P
  readonly userId: string
  readonly payload: TicketPayload[P]
  readonly expired: boolean
}

/** Redeems a token: of any number of requests at once, one gets it. Undefined when it is unknown, used or for something else. */
export async function redeemTicket<P extends TicketPurpose>(
  { db, now }: Kernel,
  purposes: readonly P[],
  token: string,
): Promise<Ticket<P> | undefined> {
  if (!isTokenShaped(token)) return undefined
  const found = await db
    .deleteFrom('verification')
    .where('valueHash', '=', tokenHash(token))
    .where('purpose', 'in', purposes)
    .returning(['purpose', 'userId', 'payload', 'expiresAt'])
    .executeTakeFirst()
  if (found === undefined) return undefined
  const { purpose, userId, payload, expiresAt } = found
  // What `issueTicket` wrote under that purpose.
  return { purpose: purpose as P, userId, payload: payload as TicketPayload[P], expired: expiresAt <= now() }
}

/** Would this token be redeemed now? It stays. */
export async function isTicketGood(
  { db, now }: Kernel,
  purpose: TicketPurpose,
  token: string,
): Promise<boolean> {
  if (!isTokenShaped(token)) return false
  const found = await db
    .selectFrom('verification')
    .select('expiresAt')
    .where('valueHash', '=', tokenHash(token))
    .where('purpose', '=', purpose)
    .executeTakeFirst()
  return found !== undefined && found.expiresAt > now()
}

export async function deleteTickets(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('verification').where('userId', '=', userId).execute()
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
