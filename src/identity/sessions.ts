import type { Selectable } from 'kysely'
import { type CoherentCache, coherentCache } from '#kernel/db/cache.ts'
import type { Db } from '#kernel/db/connect.ts'
import { selectList, statement } from '#kernel/db/keyed.ts'
import type { SessionTable } from '#kernel/db/tables.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { isTokenShaped, tokenHash } from './tokens.ts'
import { isBanned, USER_COLUMNS, type User } from './users.ts'

export type Session = Omit<Selectable<SessionTable>, 'tokenHash'>

/** A session that may be used now, and whose it is. */
export type LiveSession = {
  readonly session: Session
  readonly user: User
  /** What the user is in the session's active organization: several roles are joined by commas. Null without one. */
  readonly organizationRole: string | null
}

/**
 * Finds whose a token is; from memory while that may be believed, else by one indexed query, which an address that has
 * used up its limit is not worth.
 */
export type Sessions = {
  find(token: string, address: string): Promise<LiveSession | undefined> | LiveSession | undefined
}

/** Sessions kept in memory; about 2 KB each. */
const CACHED = 20_000

export function liveSessions(kernel: Kernel): Sessions {
  const cache: CoherentCache<LiveSession> = coherentCache({
    coherence: kernel.coherence,
    max: CACHED,
    load: (hash) => findSessionByToken(kernel, Buffer.from(hash, 'base64url')),
    tags: ({ session, user }) => [`session:${session.id}`, `user:${user.id}`],
  })
  const whenUsable = (found: LiveSession | undefined): LiveSession | undefined => {
    if (found === undefined) return undefined
    const now = kernel.now()
    return found.session.expiresAt > now && !isBanned(found.user, now) ? found : undefined
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
  }
}

const SESSION_COLUMNS = [
  'id', 'userId', 'expiresAt', 'createdAt', 'updatedAt', 'remembered', 'ipAddress', 'userAgent', 'activeOrganizationId',
] as const satisfies readonly (keyof Session)[] // biome-ignore format: one line reads better
const SESSION_BY_TOKEN = statement<Record<string, unknown>>(
  `select ${selectList('s', SESSION_COLUMNS, 's.')}, ${selectList('u', USER_COLUMNS, 'u.')}, m.role as organization_role
   from service.session s join service."user" u on u.id = s.user_id
   left join service.member m on m.organization_id = s.active_organization_id and m.user_id = s.user_id
   where s.token_hash = $1`,
)

async function findSessionByToken({ keyed }: Kernel, hash: Buffer): Promise<LiveSession | undefined> {
  const [row] = await keyed.query(SESSION_BY_TOKEN, [hash])
  if (row === undefined) return undefined
  const pick = (table: string, names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, row[`${table}.${name}`]]))
  // The statement selects exactly these columns.
  return {
    session: pick('s', SESSION_COLUMNS) as Session,
    user: pick('u', USER_COLUMNS) as User,
    organizationRole: row.organization_role as string | null,
  }
}

export type NewSession = Omit<Session, 'updatedAt' | 'activeOrganizationId'> & { readonly tokenHash: Buffer }

/** Starts a session and ends the user's oldest beyond `most`. */
export async function insertSession(db: Db, session: NewSession, most: number): Promise<Session> {
  return db
    .with('surplus', (with_) =>
      with_.deleteFrom('session').where('id', 'in', (of) =>
        of
          .selectFrom('session')
          .select('id')
          .where('userId', '=', session.userId)
          .orderBy('createdAt', 'desc')
          .orderBy('id', 'desc')
          // The new one is not counted: a statement does not see its own insert.
          .offset(most - 1)
          .limit(1_000),
      ),
    )
    .insertInto('session')
    .values({ ...session, updatedAt: session.createdAt })
    .returning(SESSION_COLUMNS)
    .executeTakeFirstOrThrow()
}

/** Moves the end of a session, unless another request just did. */
export async function extendSession(db: Db, session: Session, expiresAt: Date, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('session')
    .set({ expiresAt, updatedAt: now })
    .where('id', '=', session.id)
    .where('updatedAt', '=', session.updatedAt)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Gives a session a new token; the old one is worth nothing from then on. Its age stays. */
export async function updateSessionToken(db: Db, id: string, hash: Buffer, now: Date): Promise<void> {
  await db.updateTable('session').set({ tokenHash: hash, updatedAt: now }).where('id', '=', id).execute()
}

/** Sessions that may still be used, newest first. */
export function listSessions(db: Db, userId: string, now: Date): Promise<Session[]> {
  return db
    .selectFrom('session')
    .select(SESSION_COLUMNS)
    .where('userId', '=', userId)
    .where('expiresAt', '>', now)
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .execute()
}

export async function deleteSession(db: Db, id: string): Promise<void> {
  await db.deleteFrom('session').where('id', '=', id).execute()
}

/** Ends one session of this user, named by its id or its token; returns how many that were. */
export async function deleteSessionOf(
  db: Db,
  userId: string,
  by: { id: string } | { token: string },
): Promise<number> {
  const own = db.deleteFrom('session').where('userId', '=', userId)
  const one = 'id' in by ? own.where('id', '=', by.id) : own.where('tokenHash', '=', tokenHash(by.token))
  const { numDeletedRows } = await one.executeTakeFirst()
  return Number(numDeletedRows)
}

/** Ends every session of the user, but the one to keep; returns how many that were. */
export async function deleteUserSessions(db: Db, userId: string, keep?: string): Promise<number> {
  const all = db.deleteFrom('session').where('userId', '=', userId)
  const { numDeletedRows } = await (keep === undefined ? all : all.where('id', '!=', keep)).executeTakeFirst()
  return Number(numDeletedRows)
}

/** At most `batch` sessions that ended; returns how many. */
export async function deleteExpiredSessions(db: Db, now: Date, batch: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('session')
    .where('id', 'in', (of) =>
      of.selectFrom('session').select('id').where('expiresAt', '<=', now).limit(batch),
    )
    .executeTakeFirst()
  return Number(numDeletedRows)
}
