import { type Selectable, sql } from 'kysely'
import type { Config } from '#kernel/config/config.ts'
import { type CoherentCache, createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Db } from '#kernel/db/connect.ts'
import { preparedStatement, selectList } from '#kernel/db/pipelined-statements.ts'
import type { SessionTable } from '#kernel/db/tables.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Impersonator, mayImpersonate } from './impersonation.ts'
import { hasShownFactor, type ProofColumns } from './shown.ts'
import { isTokenShaped, tokenHash } from './tokens.ts'
import { isBanned, USER_COLUMNS, type User, withoutExpiredBan } from './users.ts'

export type Session = Omit<Selectable<SessionTable>, 'tokenHash'>

/** A valid session and its user. */
export type LiveSession = {
  readonly session: Session
  readonly user: User
  /** The user's roles in the session's active organization, joined by commas. Null without one. */
  readonly organizationRole: string | null
  /** The admin who acts as the user, for an impersonated session whose parent is alive. */
  readonly impersonator: (Impersonator & { readonly hasSecondFactor: boolean }) | undefined
}

/**
 * Finds the session of a token, from memory while the process holds a lease, else by one indexed query. The query is refused to an
 * address that has used up its limit.
 */
export type Sessions = {
  find(token: string, address: string): Promise<LiveSession | undefined> | LiveSession | undefined
  /** From the database, after a change that is not notified. Later calls in this process find the new state too. */
  findAgain(token: string): Promise<LiveSession | undefined>
}

/** Sessions in memory, about 2 KB each. */
const CACHE_SIZE = 20_000

export function createSessions(kernel: Kernel): Sessions {
  const cache: CoherentCache<LiveSession> = createCoherentCache({
    coherence: kernel.coherence,
    max: CACHE_SIZE,
    load: (hash) => findSessionByToken(kernel, Buffer.from(hash, 'base64url')),
    tags: ({ session, user, impersonator }) => [
      `session:${session.id}`,
      `user:${user.id}`,
      ...(impersonator === undefined
        ? []
        : [`session:${session.parentSessionId}`, `user:${impersonator.id}`]),
    ],
    // Another process may have extended it, which is not notified (0006_notifications.sql): look it up again.
    isFresh: ({ session }) => session.expiresAt > kernel.now(),
  })
  const whenUsable = (found: LiveSession | undefined): LiveSession | undefined => {
    if (found === undefined) return undefined
    const now = kernel.now()
    const isUsable = found.session.expiresAt > now && !isBanned(found.user, now) && isAllowed(kernel, found)
    if (!isUsable) return undefined
    // For most requests nothing is copied.
    return found.user.banned ? { ...found, user: withoutExpiredBan(found.user, now) } : found
  }
  const look = async (key: string, address: string) => {
    await kernel.limits.expectRoom('default', address)
    return whenUsable(await cache.get(key))
  }
  return {
    find(token, address) {
      if (!isTokenShaped(token)) return undefined
      const key = tokenHash(token).toString('base64url')
      const held = cache.peek(key)
      return held === undefined ? look(key, address) : whenUsable(held)
    },
    async findAgain(token) {
      const key = tokenHash(token).toString('base64url')
      cache.forget(key)
      return whenUsable(await cache.get(key))
    },
  }
}

/** Whether the admin of an impersonated session may still act as the user. */
const isAllowed = (kernel: Kernel, { session, user, impersonator }: LiveSession): boolean =>
  session.impersonatedBy === null ||
  (impersonator !== undefined && mayImpersonate(kernel, impersonator, user))

const SESSION_COLUMNS = [
  'id', 'userId', 'expiresAt', 'createdAt', 'updatedAt', 'remembered', 'ipAddress', 'userAgent', 'activeOrganizationId',
  'shown', 'authTime', 'passwordShownAt', 'factorShownAt', 'userHad',
  'impersonatedBy', 'parentSessionId',
] as const satisfies readonly (keyof Session)[] // biome-ignore format: one line reads better
const IMPERSONATOR_COLUMNS = [
  'id',
  'role',
  'banned',
  'banExpires',
] as const satisfies readonly (keyof Impersonator)[]
const SESSION_BY_TOKEN = preparedStatement<Record<string, unknown>>(
  `select ${selectList('s', SESSION_COLUMNS, 's.')}, ${selectList('u', USER_COLUMNS, 'u.')}, m.role as organization_role,
     ${selectList('a', IMPERSONATOR_COLUMNS, 'a.')}, p.created_at as parent_begin, p.expires_at as parent_end,
     p.shown as parent_shown
   from service.session s join service."user" u on u.id = s.user_id
   left join service.member m on m.organization_id = s.active_organization_id and m.user_id = s.user_id
   left join service.session p on p.id = s.parent_session_id and p.user_id = s.impersonated_by
   left join service."user" a on a.id = p.user_id
   where s.token_hash = $1`,
)

async function findSessionByToken(
  { pipelined, config }: Kernel,
  hash: Buffer,
): Promise<LiveSession | undefined> {
  const [row] = await pipelined.query(SESSION_BY_TOKEN, [hash])
  if (row === undefined) return undefined
  const pick = (table: string, names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, row[`${table}.${name}`]]))
  // The statement selects exactly these columns.
  const session = withinMaxAge(config, pick('s', SESSION_COLUMNS) as Session)
  const parent = { createdAt: row.parent_begin as Date, expiresAt: row.parent_end as Date | null }
  return {
    session:
      parent.expiresAt === null
        ? session
        : endingBy(session, endWithinMaxAge(config, parent.createdAt, parent.expiresAt)),
    user: pick('u', USER_COLUMNS) as User,
    organizationRole: row.organization_role as string | null,
    impersonator:
      parent.expiresAt === null
        ? undefined
        : {
            ...(pick('a', IMPERSONATOR_COLUMNS) as Impersonator),
            hasSecondFactor: hasShownFactor(row.parent_shown as string[]),
          },
  }
}

/** A lowered `session.max_age` holds for older sessions too. */
const withinMaxAge = (config: Config, session: Session): Session =>
  endingBy(session, endWithinMaxAge(config, session.createdAt, session.expiresAt))

const endingBy = (session: Session, end: Date): Session =>
  end < session.expiresAt ? { ...session, expiresAt: end } : session

/** The asked end of a session, or that of `session.max_age` if it comes first. */
export function endWithinMaxAge({ session: { max_age } }: Config, createdAt: Date, asked: Date): Date {
  const last = createdAt.getTime() + max_age
  return max_age === 0 || asked.getTime() <= last ? asked : new Date(last)
}

export type NewSession = Omit<
  Session,
  'updatedAt' | 'activeOrganizationId' | 'impersonatedBy' | 'parentSessionId' | 'userHad' | keyof ProofColumns
> & { readonly tokenHash: Buffer }

/** Begins an impersonated session, and ends the admin's oldest ones beyond `max`. It ends none of the user's own. */
export async function insertImpersonation(
  db: Db,
  session: NewSession & { readonly impersonatedBy: string; readonly parentSessionId: string },
  max: number,
): Promise<Session> {
  return db
    .with('surplus', (with_) =>
      with_.deleteFrom('session').where('id', 'in', (of) =>
        of
          .selectFrom('session')
          .select('id')
          .where('impersonatedBy', '=', session.impersonatedBy)
          .orderBy('createdAt', 'desc')
          .orderBy('id', 'desc')
          // As in `insertSession`.
          .offset(max - 1)
          .limit(1_000),
      ),
    )
    .insertInto('session')
    .values({ ...session, updatedAt: session.createdAt })
    .returning(SESSION_COLUMNS)
    .executeTakeFirstOrThrow()
}

/** Starts a session, and ends the user's oldest ones beyond `max`. It keeps what the user has at this moment. */
export async function insertSession(
  db: Db,
  session: NewSession & ProofColumns & Pick<Session, 'activeOrganizationId'>,
  max: number,
): Promise<Session> {
  return db
    .with('surplus', (with_) =>
      with_.deleteFrom('session').where('id', 'in', (of) =>
        of
          .selectFrom('session')
          .select('id')
          .where('userId', '=', session.userId)
          // An admin who impersonates the user ends none of the user's own sessions.
          .where('impersonatedBy', 'is', null)
          .orderBy('createdAt', 'desc')
          .orderBy('id', 'desc')
          // A statement does not see its own insert, so the new one is not counted.
          .offset(max - 1)
          .limit(1_000),
      ),
    )
    .insertInto('session')
    .values({
      ...session,
      shown: [...session.shown],
      userHad: sql`service.methods_of(${session.userId})`,
      updatedAt: session.createdAt,
    })
    .returning(SESSION_COLUMNS)
    .executeTakeFirstOrThrow()
}

/** Extends a session, unless another request just has. It is not notified: see `findAgain`. */
export async function extendSession(db: Db, session: Session, expiresAt: Date, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('session')
    .set({ expiresAt, updatedAt: now })
    .where('id', '=', session.id)
    .where('updatedAt', '=', session.updatedAt)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Replaces the token of a session. Its age stays. */
export async function updateSessionToken(db: Db, id: string, hash: Buffer, now: Date): Promise<void> {
  await db.updateTable('session').set({ tokenHash: hash, updatedAt: now }).where('id', '=', id).execute()
}

/** Keeps what a session has shown, for one that a proof has locked (proof.ts). */
export async function updateShown(db: Db, id: string, { shown, ...times }: ProofColumns): Promise<void> {
  await db
    .updateTable('session')
    .set({ ...times, shown: [...shown] })
    .where('id', '=', id)
    .execute()
}

/** A session that a proof has locked (proof.ts). */
export const getSession = (db: Db, id: string): Promise<Session> =>
  db.selectFrom('session').select(SESSION_COLUMNS).where('id', '=', id).executeTakeFirstOrThrow()

/** Valid sessions, newest first. */
export async function listSessions({ db, config, now }: Kernel, userId: string): Promise<Session[]> {
  const sessions = await db
    .selectFrom('session')
    .select(SESSION_COLUMNS)
    .where('userId', '=', userId)
    .where('expiresAt', '>', now())
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .execute()
  return sessions.map((session) => withinMaxAge(config, session)).filter(({ expiresAt }) => expiresAt > now())
}

export async function deleteSession(db: Db, id: string): Promise<void> {
  await db.deleteFrom('session').where('id', '=', id).execute()
}

export type NamedSession = { readonly id: string } | { readonly token: string }

/** The id of the user whose session it is. */
export async function findSessionOwner(db: Db, by: NamedSession): Promise<string | undefined> {
  const all = db.selectFrom('session').select('userId')
  const one = 'id' in by ? all.where('id', '=', by.id) : all.where('tokenHash', '=', tokenHash(by.token))
  return (await one.executeTakeFirst())?.userId
}

/** Ends one session of this user, by its id or its token; returns the number of sessions ended. */
export async function deleteSessionOf(db: Db, userId: string, by: NamedSession): Promise<number> {
  const own = db.deleteFrom('session').where('userId', '=', userId)
  const one = 'id' in by ? own.where('id', '=', by.id) : own.where('tokenHash', '=', tokenHash(by.token))
  const { numDeletedRows } = await one.executeTakeFirst()
  return Number(numDeletedRows)
}

/** Ends every session of the user except `keep`; returns the number of sessions ended. */
export async function deleteUserSessions(db: Db, userId: string, keep?: string): Promise<number> {
  const all = db.deleteFrom('session').where('userId', '=', userId)
  const { numDeletedRows } = await (keep === undefined ? all : all.where('id', '!=', keep)).executeTakeFirst()
  return Number(numDeletedRows)
}

/** Deletes at most `batch` expired sessions; returns their number. */
export async function deleteExpiredSessions(db: Db, now: Date, batch: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('session')
    .where('id', 'in', (of) =>
      of.selectFrom('session').select('id').where('expiresAt', '<=', now).limit(batch),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
