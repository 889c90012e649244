import type { ExpressionBuilder } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { DB } from '#kernel/db/tables.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { isTokenShaped, tokenHash } from './tokens.ts'
import type { User } from './users.ts'

/** What a one-time token is for, and what it carries; a token of one purpose is worthless for another. */
export type TicketPayload = {
  /** `browser`: hash of a cookie that only the browser has which set the password (email/email.ts). */
  'verify-email': { readonly browser?: string }
  'reset-password': Record<string, never>
  'confirm-change-email': { readonly newEmail: string; readonly callbackURL?: string }
  'change-email': Record<string, never>
  'delete-user': Record<string, never>
}
export type TicketPurpose = keyof TicketPayload

/** Its address is to become the user's. Every other ticket was mailed to the user's own, and is worthless once that differs. */
const NEW_ADDRESS: TicketPurpose = 'change-email'

export type NewTicket<P extends TicketPurpose> = {
  readonly userId: string
  /** The session that asked: the ticket ends with it. Null: asked without one, or the mail has to outlive it. */
  readonly sessionId: string | null
  /** Where it is mailed to. */
  readonly address: string
  /** Milliseconds. */
  readonly life: number
  readonly payload: TicketPayload[P]
}

/** A one-time token for a link; only its hash is stored. */
export async function issueTicket<P extends TicketPurpose>(
  kernel: Kernel,
  purpose: P,
  { life, payload, ...ticket }: NewTicket<P>,
): Promise<string> {
  const token = randomToken(kernel.random)
  const now = kernel.now()
  await kernel.db
    .insertInto('verification')
    .values({
      ...ticket,
      valueHash: tokenHash(token),
      purpose,
      payload: JSON.stringify(payload),
      createdAt: now,
      expiresAt: new Date(now.getTime() + life),
    })
    .execute()
  return token
}

export type Ticket<P extends TicketPurpose> = {
  readonly purpose: P
  readonly userId: string
  readonly sessionId: string | null
  readonly address: string
  readonly payload: TicketPayload[P]
  /** It has run out, or the session that asked has. */
  readonly expired: boolean
}

/** The ticket of a token, which stays. Undefined when it is unknown, used, for something else or for another address. */
export async function findTicket<P extends TicketPurpose>(
  { db, now }: Kernel,
  purposes: readonly P[],
  token: string,
): Promise<Ticket<P> | undefined> {
  if (!isTokenShaped(token)) return undefined
  const found = await db
    .selectFrom('verification as v')
    .innerJoin('user as u', 'u.id', 'v.userId')
    .where('v.valueHash', '=', tokenHash(token))
    .where('v.purpose', 'in', purposes)
    .where(isToItsAddress)
    .select(TICKET_COLUMNS)
    .select(sessionEnd)
    .executeTakeFirst()
  return found && ticketFrom(found, now())
}

/**
 * Redeems a token: of any number of requests at once, one gets it. The user's row is locked before (proof.ts), as
 * it is before anything else that takes tickets away: the other order would be a deadlock.
 */
export async function redeemTicket<P extends TicketPurpose>(
  { db, now }: Kernel,
  { id }: User,
  purposes: readonly P[],
  token: string,
): Promise<Ticket<P> | undefined> {
  if (!isTokenShaped(token)) return undefined
  const found = await db
    .deleteFrom('verification as v')
    .using('user as u')
    .whereRef('u.id', '=', 'v.userId')
    .where('u.id', '=', id)
    .where('v.valueHash', '=', tokenHash(token))
    .where('v.purpose', 'in', purposes)
    .where(isToItsAddress)
    .returning(TICKET_COLUMNS)
    .returning(sessionEnd)
    .executeTakeFirst()
  return found && ticketFrom(found, now())
}

type Tables = DB & { readonly v: DB['verification']; readonly u: DB['user'] }
type Of = ExpressionBuilder<Tables, 'v' | 'u'>

const TICKET_COLUMNS = [
  'v.purpose',
  'v.userId',
  'v.sessionId',
  'v.address',
  'v.payload',
  'v.expiresAt',
] as const
const isToItsAddress = (of: Of) =>
  of.or([of('v.purpose', '=', NEW_ADDRESS), of('v.address', '=', of.ref('u.email'))])
const sessionEnd = (of: Of) =>
  of
    .selectFrom('session as s')
    .select('s.expiresAt')
    .whereRef('s.id', '=', 'v.sessionId')
    .as('sessionExpiresAt')

type Row = Omit<Ticket<TicketPurpose>, 'purpose' | 'payload' | 'expired'> & {
  readonly purpose: string
  readonly payload: unknown
  readonly expiresAt: Date
  readonly sessionExpiresAt: Date | null
}

function ticketFrom<P extends TicketPurpose>(row: Row, now: Date): Ticket<P> {
  const { expiresAt, sessionExpiresAt, ...ticket } = row
  const expired = expiresAt <= now || (sessionExpiresAt !== null && sessionExpiresAt <= now)
  // Purpose and payload are what `issueTicket` wrote, and the statement asked for purposes of P.
  return { ...ticket, purpose: row.purpose as P, payload: row.payload as TicketPayload[P], expired }
}

/** Every open ticket of the user. */
export async function deleteTickets(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('verification').where('userId', '=', userId).execute()
}

/** Those of the user that are for one of these. */
export async function deleteTicketsFor(
  db: Db,
  userId: string,
  purposes: readonly TicketPurpose[],
): Promise<void> {
  await db.deleteFrom('verification').where('userId', '=', userId).where('purpose', 'in', purposes).execute()
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
