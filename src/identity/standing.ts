import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Mailbox } from './mailbox.ts'
import type { Session } from './sessions.ts'
import type { ProofColumns } from './shown.ts'

/** The proofs that a session has shown, and the methods that its user had when it began and has now. */
export type Standing = ProofColumns &
  Mailbox & {
    readonly createdAt: Date
    /** The user is: the session is all that this user has. */
    readonly isAnonymous: boolean
    /** Those of now that were not added while the session lived. */
    readonly stillHas: readonly string[]
    /** When the user's password was added to the account; a change keeps it. Null without a password. */
    readonly passwordAddedAt: Date | null
    /** When the user's password was set by other than sign-up, import and change. Null also without a password. */
    readonly passwordSetAt: Date | null
  }

/** For a session that a proof has locked (proof.ts). */
export async function getStanding(db: Db, id: string): Promise<Standing> {
  const standing = await findStanding(db, id)
  if (standing === undefined) throw new Error('the session of a standing is locked')
  return standing
}

/** Undefined when the session has ended. */
export const findStanding = (db: Db, id: string): Promise<Standing | undefined> =>
  db
    .selectFrom('session as s')
    .leftJoin('account as a', (on) =>
      on.onRef('a.userId', '=', 's.userId').on('a.providerId', '=', 'credential'),
    )
    .innerJoin('user as u', 'u.id', 's.userId')
    .where('s.id', '=', id)
    .select('u.isAnonymous')
    .select(['s.createdAt', 's.shown', 's.authTime', 's.passwordShownAt', 's.factorShownAt', 's.userHad'])
    .select(['a.createdAt as passwordAddedAt', 'a.passwordSetAt'])
    .select(sql<boolean>`coalesce(a.password_from_mail, false)`.as('passwordFromMail'))
    .select(sql<string[]>`service.methods_of(s.user_id)`.as('has'))
    .select(sql<string[]>`service.methods_of(s.user_id, s.created_at)`.as('stillHas'))
    .executeTakeFirst()

/** The same, as far as it tells what the mailbox has counted for, of a sign-in that has shown this. */
export async function getMailbox(db: Db, userId: string, shown: readonly string[]): Promise<Mailbox> {
  const fromMail = db
    .selectFrom('account')
    .where('userId', '=', userId)
    .where('providerId', '=', 'credential')
    .where('passwordFromMail', '=', true)
  const account = await db
    .selectNoFrom(sql<string[]>`service.methods_of(${userId})`.as('has'))
    .select(({ exists }) => exists(fromMail).$castTo<boolean>().as('passwordFromMail'))
    .executeTakeFirstOrThrow()
  return { shown, userHad: [], ...account }
}

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
