import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { deleteExpired } from '#kernel/db/delete-expired.ts'

type TicketRow = {
  /** SHA-256 of the ticket. */
  readonly ticketHash: Buffer
  /** Headers that prove the caller, sealed. */
  readonly sealed: string
  /** The body, as JSON text. */
  readonly body: string
}

export const insertTicket = async (db: Db, row: TicketRow & { readonly expiresAt: Date }): Promise<void> =>
  void (await db.insertInto('realtimeTicket').values(row).execute())

/** Redeems a ticket for the first time: of any number of concurrent attempts, one succeeds. From then on it expires at `until`. */
export const consumeTicket = (
  db: Db,
  ticketHash: Buffer,
  { now, until }: { readonly now: Date; readonly until: Date },
): Promise<TicketRow | undefined> =>
  db
    .updateTable('realtimeTicket')
    .set({ usedAt: now, expiresAt: until })
    .where('ticketHash', '=', ticketHash)
    .where('usedAt', 'is', null)
    .where('expiresAt', '>', now)
    .returning(['ticketHash', 'sealed', 'body'])
    .executeTakeFirst()

/** Redeems one again that was redeemed before. */
export const reuseTicket = (
  db: Db,
  ticketHash: Buffer,
  { now, until }: { readonly now: Date; readonly until: Date },
): Promise<TicketRow | undefined> =>
  db
    .updateTable('realtimeTicket')
    .set({ expiresAt: until })
    .where('ticketHash', '=', ticketHash)
    .where('usedAt', 'is not', null)
    .where('expiresAt', '>', now)
    .returning(['ticketHash', 'sealed', 'body'])
    .executeTakeFirst()

/** One that is redeemed meanwhile stays. */
export const deleteExpiredRealtimeTickets = (db: Db, before: Date, batch: number): Promise<number> =>
  deleteExpired(db, { table: 'service.realtime_ticket', key: 'ticket_hash', before, batch })

/** Tells every process that listens to the channel. */
export const notify = async (db: Db, channel: string, payload: string): Promise<void> =>
  void (await sql`select pg_notify(${channel}, ${payload})`.execute(db))
