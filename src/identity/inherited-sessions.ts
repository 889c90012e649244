import { type RawBuilder, sql } from 'kysely'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import {
  deleteOldestSessions,
  endWithinMaxAge,
  ownSessions,
  SESSION_COLUMNS,
  type Session,
} from './sessions.ts'
import { tokenHash } from './tokens.ts'

/**
 * The columns that a session takes over from the one that has vouched for it: it is as old as that one, and has shown what that one had
 * shown. A new column about the proofs of a session belongs here.
 */
export const INHERITED = [
  'createdAt', 'remembered', 'shown', 'userHad', 'authTime', 'passwordShownAt', 'factorShownAt',
] as const satisfies readonly (keyof Session)[] // biome-ignore format: one line reads better

export type Inheritance = Pick<Session, (typeof INHERITED)[number]>

/** The same in the payload of a ticket. */
export type WrittenInheritance = {
  readonly [Column in keyof Inheritance]: Date extends Inheritance[Column]
    ? string | Exclude<Inheritance[Column], Date>
    : Inheritance[Column]
}

/** As the session is now. Later proofs of it are none of those who inherit. */
export const writeInheritance = (session: Session): WrittenInheritance =>
  // JSON writes dates as text.
  JSON.parse(JSON.stringify(Object.fromEntries(INHERITED.map((column) => [column, session[column]]))))

export const readInheritance = (written: WrittenInheritance): Inheritance => ({
  ...written,
  createdAt: new Date(written.createdAt),
  authTime: dateOf(written.authTime),
  passwordShownAt: dateOf(written.passwordShownAt),
  factorShownAt: dateOf(written.factorShownAt),
})

const dateOf = (written: string | null): Date | null => (written === null ? null : new Date(written))

const DAY = 86_400_000

type NewInheritedSession = {
  readonly userId: string
  readonly inheritance: Inheritance
  readonly ipAddress: string
  readonly userAgent: string | undefined
  /** The one that is active in it. */
  readonly organization: RawBuilder<string | null>
}

/**
 * Starts a session of a user whose row is locked, and ends the user's oldest ones beyond `session.max_per_user`. It notes no known device,
 * since nobody has signed in on it. One that is not remembered ends with the day of the sign-in that it comes from.
 */
export async function startInheritedSession(
  kernel: Kernel,
  { userId, inheritance, ipAddress, userAgent, organization }: NewInheritedSession,
): Promise<{ readonly token: string; readonly session: Session }> {
  const { db, config, random } = kernel
  const now = kernel.now()
  const { createdAt, remembered, shown, userHad } = inheritance
  const { expires_in, max_per_user } = config.session
  const token = randomToken(random)
  const asked = remembered ? now.getTime() + expires_in : createdAt.getTime() + Math.min(DAY, expires_in)
  const { isFull, ...session } = await db
    .insertInto('session')
    .values({
      ...inheritance,
      ...{ id: uuidv7(now, random), userId, tokenHash: tokenHash(token) },
      ...{ shown: [...shown], userHad: [...userHad] },
      expiresAt: endWithinMaxAge(config, createdAt, new Date(asked)),
      updatedAt: now,
      ...{ ipAddress, userAgent: userAgent?.slice(0, 512) ?? null },
      activeOrganizationId: organization,
    })
    .returning(SESSION_COLUMNS)
    // A statement does not see its own insert, so the new one is not counted.
    .returning(({ exists }) => exists(ownSessions(db, userId).offset(max_per_user - 1)).as('isFull'))
    .executeTakeFirstOrThrow()
  if (isFull)
    await deleteOldestSessions(db, userId, {
      kept: sql`(select ${session.id}::uuid as id)`,
      max: max_per_user,
    })
  return { token, session }
}
