import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import type {
  AddressPurpose,
  AnonymousPurpose,
  SubjectOf,
  TicketPayload,
  TicketPurpose,
  UserPurpose,
} from './ticket-purposes.ts'
import { isTokenShaped, tokenHash } from './tokens.ts'
import type { User } from './users.ts'

/** Its address is to become the user's. Every other ticket of a user is valid only while its address is the user's. */
const NEW_ADDRESS: TicketPurpose = 'change-email'

export type NewTicket<P extends TicketPurpose> = {
  readonly userId: SubjectOf<P>['userId']
  /** The session that asked: the ticket ends with it. Null without one, or if the ticket has to outlive it. */
  readonly sessionId: SubjectOf<P>['sessionId']
  /** The recipient of the mail, or the user's address if the ticket is not mailed. */
  readonly address: SubjectOf<P>['address']
  /** Milliseconds. */
  readonly lifetime: number
  readonly payload: TicketPayload<P>
  /** Beside the token (link-codes.ts). `browser`: hash of a cookie of the one that asked, if it is known. */
  readonly code?:
    | { readonly codeHash: Buffer; readonly codeExpiresAt: Date; readonly browser: string | null }
    | undefined
}

/** A new one-time token; only its hash is stored. */
export async function issueTicket<P extends TicketPurpose>(
  kernel: Pick<Kernel, 'db' | 'now' | 'random'>,
  purpose: P,
  ticket: NewTicket<P>,
): Promise<string> {
  const token = randomToken(kernel.random)
  await insertTicket(kernel, purpose, { ...ticket, valueHash: tokenHash(token) })
  return token
}

/** The same for a token that only its bearer knows. */
export async function insertTicket<P extends TicketPurpose>(
  { db, now }: Pick<Kernel, 'db' | 'now'>,
  purpose: P,
  { lifetime, payload, code, ...ticket }: NewTicket<P> & { readonly valueHash: Buffer },
): Promise<void> {
  const createdAt = now()
  const expiresAt = new Date(createdAt.getTime() + lifetime)
  await db
    .insertInto('verification')
    .values({ ...ticket, ...code, purpose, payload: JSON.stringify(payload), createdAt, expiresAt })
    .execute()
}

export type Ticket<P extends TicketPurpose> = {
  readonly purpose: P
  readonly userId: SubjectOf<P>['userId']
  readonly sessionId: string | null
  readonly address: SubjectOf<P>['address']
  readonly payload: TicketPayload<P>
  /** Counted by `countTicketAttempt`, or wrong tries at the code. */
  readonly attempts: number
  /** The ticket or the session that asked has expired. */
  readonly expired: boolean
}

/** The ticket of a token; it stays valid. Undefined when it is unknown, used, or of another purpose or address. */
export async function findTicket<P extends TicketPurpose>(
  { db, now }: Kernel,
  purposes: readonly P[],
  token: string,
): Promise<Ticket<P> | undefined> {
  if (!isTokenShaped(token)) return undefined
  const found = await db
    .selectFrom('verification as v')
    .leftJoin('user as u', 'u.id', 'v.userId')
    .where('v.valueHash', '=', tokenHash(token))
    .where('v.purpose', 'in', purposes)
    .where((of) => of.or([of('v.userId', 'is', null), IS_TO_ITS_ADDRESS]))
    .select(TICKET_COLUMNS)
    .select(SESSION_END)
    .executeTakeFirst()
  return found && ticketFrom(found, now())
}

/**
 * Redeems a token: one of any number of concurrent requests gets the ticket. The user's row has to be locked before (proof.ts), as
 * before every other deletion of tickets; another order could deadlock.
 */
export async function redeemTicket<P extends UserPurpose>(
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
    .where(IS_TO_ITS_ADDRESS)
    .returning(TICKET_COLUMNS)
    .returning(SESSION_END)
    .executeTakeFirst()
  return found && ticketFrom(found, now())
}

/** The same for a ticket of an address, which has to be locked before (proof.ts). */
export const redeemAddressTicket = <P extends AddressPurpose>(
  kernel: Kernel,
  purposes: readonly P[],
  token: string,
): Promise<Ticket<P> | undefined> => redeemWithoutUser(kernel, purposes, token)

/** The same for a ticket of nobody. No other row has to be locked. */
export const redeemAnonymousTicket = <P extends AnonymousPurpose>(
  kernel: Kernel,
  purposes: readonly P[],
  token: string,
): Promise<Ticket<P> | undefined> => redeemWithoutUser(kernel, purposes, token)

async function redeemWithoutUser<P extends AddressPurpose | AnonymousPurpose>(
  { db, now }: Kernel,
  purposes: readonly P[],
  token: string,
): Promise<Ticket<P> | undefined> {
  if (!isTokenShaped(token)) return undefined
  const found = await db
    .deleteFrom('verification as v')
    .where('v.userId', 'is', null)
    .where('v.valueHash', '=', tokenHash(token))
    .where('v.purpose', 'in', purposes)
    .returning(TICKET_COLUMNS)
    .returning(SESSION_END)
    .executeTakeFirst()
  return found && ticketFrom(found, now())
}

/** Marks a value that expires by itself as used: one of any number of concurrent requests gets true. */
export async function spendOnce(
  { db, now }: Kernel,
  purpose: AnonymousPurpose,
  valueHash: Buffer,
  expiresAt: Date,
): Promise<boolean> {
  const spent = await db
    .insertInto('verification')
    .values({ valueHash, purpose, payload: '{}', createdAt: now(), expiresAt })
    .onConflict((conflict) => conflict.column('valueHash').doNothing())
    .returning('valueHash')
    .executeTakeFirst()
  return spent !== undefined
}

export const TICKET_COLUMNS = [
  'v.purpose',
  'v.userId',
  'v.sessionId',
  'v.address',
  'v.payload',
  'v.attempts',
  'v.expiresAt',
] as const
const IS_TO_ITS_ADDRESS = sql<boolean>`(v.purpose = ${NEW_ADDRESS} or v.address = u.email)`
export const SESSION_END =
  sql<Date | null>`(select s.expires_at from service.session s where s.id = v.session_id)`.as(
    'sessionExpiresAt',
  )

/** The columns of a ticket, as a statement returns them. */
export type TicketRow = {
  readonly purpose: string
  readonly userId: string | null
  readonly sessionId: string | null
  readonly address: string | null
  readonly payload: unknown
  readonly attempts: number
  readonly expiresAt: Date
  readonly sessionExpiresAt: Date | null
}

export function ticketFrom<P extends TicketPurpose>(row: TicketRow, now: Date): Ticket<P> {
  const { expiresAt, sessionExpiresAt, ...ticket } = row
  const expired = expiresAt <= now || (sessionExpiresAt !== null && sessionExpiresAt <= now)
  // `issueTicket` wrote them, and the statement asked for purposes of P.
  const [purpose, userId, address, payload] = [
    row.purpose as P,
    row.userId as SubjectOf<P>['userId'],
    row.address as SubjectOf<P>['address'],
    row.payload as TicketPayload<P>,
  ]
  return { ...ticket, purpose, userId, address, payload, expired }
}

/** Counts an attempt at what the ticket is for; the ticket stays. The user's row has to be locked before (proof.ts). */
export async function countTicketAttempt(db: Db, token: string): Promise<void> {
  await db
    .updateTable('verification')
    .set((row) => ({ attempts: row('attempts', '+', 1) }))
    .where('valueHash', '=', tokenHash(token))
    .execute()
}

/** Deletes every ticket of the user, and of the address that the user has. */
export async function deleteTickets(db: Db, { id, email }: Pick<User, 'id' | 'email'>): Promise<void> {
  await db
    .deleteFrom('verification')
    .where((of) =>
      of.or([of('userId', '=', id), of.and([of('userId', 'is', null), of('address', '=', email)])]),
    )
    .execute()
}

/** Deletes the user's tickets of these purposes. */
export async function deleteTicketsFor(
  db: Db,
  userId: string,
  purposes: readonly TicketPurpose[],
): Promise<void> {
  await db.deleteFrom('verification').where('userId', '=', userId).where('purpose', 'in', purposes).execute()
}

/** Deletes at most `batch` expired tickets; returns their number. */
export async function deleteExpiredTickets(db: Db, now: Date, batch: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('verification')
    .where('valueHash', 'in', (of) =>
      of.selectFrom('verification').select('valueHash').where('expiresAt', '<=', now).limit(batch),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
