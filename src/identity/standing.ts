import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Session } from './sessions.ts'
import type { ProofColumns } from './shown.ts'

/** The proofs that a session has shown, and the methods that its user had when it began and has now. */
export type Standing = ProofColumns & {
  readonly createdAt: Date
  readonly userHad: readonly string[]
  readonly has: readonly string[]
  /** Those of now that were not added while the session lived. */
  readonly stillHas: readonly string[]
  /** When the user's password was added to the account; a change keeps it. Null without a password. */
  readonly passwordAddedAt: Date | null
  /** When the user's password was set by other than sign-up, import and change. Null also without a password. */
  readonly passwordSetAt: Date | null
}

/** For a session that a proof has locked (proof.ts). */
export const getStanding = (db: Db, id: string): Promise<Standing> =>
  db
    .selectFrom('session as s')
    .leftJoin('account as a', (on) =>
      on.onRef('a.userId', '=', 's.userId').on('a.providerId', '=', 'credential'),
    )
    .where('s.id', '=', id)
    .select(['s.createdAt', 's.shown', 's.authTime', 's.passwordShownAt', 's.factorShownAt', 's.userHad'])
    .select(['a.createdAt as passwordAddedAt', 'a.passwordSetAt'])
    .select(sql<string[]>`service.methods_of(s.user_id)`.as('has'))
    .select(sql<string[]>`service.methods_of(s.user_id, s.created_at)`.as('stillHas'))
    .executeTakeFirstOrThrow()

/**
 * From now on the session is as one of a user who had the second factor `method` when it began, or none: it has confirmed it, or removed it.
 * So a passkey that is added later does not stand for the factor in this session.
 */
export async function updateFactorHad(db: Db, id: string, method?: 'totp' | 'otp'): Promise<void> {
  const others = sql<string[]>`array_remove(array_remove(user_had, 'totp'), 'otp')`
  const userHad = method === undefined ? others : sql<string[]>`array_append(${others}, ${method}::text)`
  await db.updateTable('session').set({ userHad }).where('id', '=', id).execute()
}

/** From now on the session is as one of a user who had no passkey when it began: it has removed the last one. */
export async function updatePasskeyHad(
  db: Db,
  { id, userId }: Pick<Session, 'id' | 'userId'>,
): Promise<void> {
  await db
    .updateTable('session')
    .set({ userHad: sql<string[]>`array_remove(user_had, 'passkey')` })
    .where('id', '=', id)
    .where(({ not, exists, selectFrom }) => not(exists(selectFrom('passkey').where('userId', '=', userId))))
    .execute()
}
