import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { TicketPurpose } from './ticket-purposes.ts'

/**
 * A one-time code of a few digits, which a user types. It is a row of `verification` like other one-time tokens, but belongs to the
 * session or pending sign-in that asked for it, and counts its attempts. The user's row has to be locked (proof.ts).
 */
type MailedCode = {
  readonly userId: string
  /** The session that asked; null for a pending sign-in. The code ends with it. */
  readonly sessionId: string | null
  /** The session or pending sign-in that the code is valid in. */
  readonly subject: string
  readonly address: string
}

/** Replaces the code of this subject. */
export async function replaceMailedCode(
  db: Db,
  { userId, sessionId, subject, address }: MailedCode,
  {
    hash,
    createdAt,
    expiresAt,
  }: { readonly hash: Buffer; readonly createdAt: Date; readonly expiresAt: Date },
): Promise<void> {
  await db
    .deleteFrom('verification')
    .where('userId', '=', userId)
    .where('purpose', '=', PURPOSE)
    .where(of(subject))
    .execute()
  const payload = JSON.stringify({ subject })
  await db
    .insertInto('verification')
    .values({ valueHash: hash, purpose: PURPOSE, userId, sessionId, address, payload, createdAt, expiresAt })
    .execute()
}

/** Uses up a right code that has attempts left, and returns its end. */
export async function redeemMailedCode(
  db: Db,
  { userId, subject, address }: MailedCode,
  hashes: readonly Buffer[],
  max: number,
): Promise<Date | undefined> {
  const found = await db
    .deleteFrom('verification')
    .where('valueHash', 'in', hashes)
    .where('userId', '=', userId)
    .where('purpose', '=', PURPOSE)
    .where('address', '=', address)
    .where('attempts', '<', max)
    .where(of(subject))
    .returning('expiresAt')
    .executeTakeFirst()
  return found?.expiresAt
}

/** Counts a wrong attempt at the code of this subject. Returns the attempts before it and the code's end. */
export async function countAttempt(
  db: Db,
  { userId, subject }: MailedCode,
): Promise<{ readonly attempts: number; readonly expiresAt: Date } | undefined> {
  return db
    .updateTable('verification')
    .set((row) => ({ attempts: row('attempts', '+', 1) }))
    .where('userId', '=', userId)
    .where('purpose', '=', PURPOSE)
    .where(of(subject))
    .returning((row) => [row('attempts', '-', 1).as('attempts'), 'expiresAt'])
    .executeTakeFirst()
}

const PURPOSE: TicketPurpose = 'second-factor-code'
const of = (subject: string) => sql<boolean>`payload->>'subject' = ${subject}`
