import { hash } from 'node:crypto'
import type { Config } from '#kernel/config/config.ts'
import { type CoherentCache, createCoherentCache } from '#kernel/db/coherent-cache.ts'
import { preparedStatement, selectList } from '#kernel/db/pipelined-statements.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Impersonator, mayImpersonate } from './impersonation.ts'
import {
  endingBy,
  endWithinMaxAge,
  extendSession,
  SESSION_COLUMNS,
  type Session,
  withinMaxAge,
} from './sessions.ts'
import { FACTOR_OF_ADMIN, hasShownFactor } from './shown.ts'
import { isTokenShaped } from './tokens.ts'
import { isBanned, USER_COLUMNS, type User, withoutExpiredBan } from './users.ts'

/** A valid session and its user. */
export type LiveSession = {
  readonly session: Session
  /** The hash of its token, which a new proof replaces. */
  readonly tokenHash: Buffer
  readonly user: User
  /** The user's roles in the session's active organization, joined by commas. Null without one. */
  readonly organizationRole: string | null
  /** The admin who acts as the user, for an impersonated session whose parent is alive. The factor: at its begin, and still. */
  readonly impersonator: (Impersonator & { readonly hasSecondFactor: boolean }) | undefined
}

/**
 * Finds the session of a token, from memory while the process holds a lease, else by one indexed query. The query is refused to an
 * address that has used up its limit. Without an address, the caller was let in by the same token before, and guesses nothing.
 */
export type Sessions = {
  find(token: string, address?: string): Promise<LiveSession | undefined> | LiveSession | undefined
  /**
   * The same from memory alone, for a session of a user's own about which nothing is to be decided: none that is impersonated, due to be
   * extended, or of a user who was banned.
   */
  held(token: string): LiveSession | undefined
  /** The same by the session's id, for callers who have proven it in another way. */
  findById(id: string, address?: string): Promise<LiveSession | undefined> | LiveSession | undefined
  /** The session as it is now, for work that has begun with it: no limit refuses it. Undefined when it has ended, or has another token. */
  findStill(found: LiveSession): Promise<LiveSession | undefined>
  /** Whether `find` would find the very same again. From memory alone: false when that cannot tell. */
  isAsFound(found: LiveSession): boolean
  /**
   * Extends a remembered session that was last extended `update_age` ago. So a user who returns within `expires_in` stays signed in, up to
   * `max_age`. Undefined when the session has ended in the meantime.
   */
  roll(found: LiveSession, token: string): Promise<RolledSession | undefined>
}

type RolledSession = {
  readonly live: LiveSession
  /** Milliseconds that it lives from now on, if this call has extended it. */
  readonly lifetime?: number
}

/** Sessions in memory, about 2 KB each. */
const CACHE_SIZE = 20_000

export function createSessions(kernel: Kernel): Sessions {
  const cacheOf = (load: (key: string) => Promise<LiveSession | undefined>): CoherentCache<LiveSession> =>
    createCoherentCache({
      coherence: kernel.coherence,
      max: CACHE_SIZE,
      load,
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
  const byToken = cacheOf((hash) => findSession(kernel, SESSION_BY_TOKEN, Buffer.from(hash, 'base64url')))
  const byId = cacheOf((id) => findSession(kernel, SESSION_BY_ID, id))
  const whenUsable = (found: LiveSession | undefined): LiveSession | undefined => {
    if (found === undefined) return undefined
    const now = kernel.now()
    const isUsable = found.session.expiresAt > now && !isBanned(found.user, now) && isAllowed(kernel, found)
    if (!isUsable) return undefined
    // For most requests nothing is copied.
    return found.user.banned ? { ...found, user: withoutExpiredBan(found.user, now) } : found
  }
  const findIn = (cache: CoherentCache<LiveSession>, key: string, address?: string) => {
    const held = cache.peek(key)
    return held === undefined ? lookUp(cache, key, address) : whenUsable(held)
  }
  const lookUp = async (cache: CoherentCache<LiveSession>, key: string, address?: string) => {
    if (address !== undefined) await kernel.limits.expectRoom('default', address)
    return whenUsable(await cache.get(key))
  }
  /** From the database: that a session was extended is not notified. Later calls in this process find the new end too. */
  const findAgain = async (token: string) => {
    const key = keyOf(token)
    byToken.forget(key)
    return whenUsable(await byToken.get(key))
  }
  return {
    find: (token, address) => (isTokenShaped(token) ? findIn(byToken, keyOf(token), address) : undefined),
    held(token) {
      const found = isTokenShaped(token) ? byToken.peek(keyOf(token)) : undefined
      if (found === undefined || found.user.banned || found.session.impersonatedBy !== null) return undefined
      return rolledEnd(kernel.config, found.session, kernel.now()) === undefined ? found : undefined
    },
    findById: (id, address) => findIn(byId, id, address),
    async findStill({ session, tokenHash }) {
      const found = whenUsable(await byId.get(session.id))
      return found?.tokenHash.equals(tokenHash) ? found : undefined
    },
    isAsFound: (found) => whenUsable(byToken.peek(found.tokenHash.toString('base64url'))) === found,
    async roll(found, token) {
      const { session } = found
      const now = kernel.now()
      const expiresAt = rolledEnd(kernel.config, session, now)
      if (expiresAt === undefined) return { live: found }
      const isExtended = await extendSession(kernel.db, session, expiresAt, now)
      const live = await findAgain(token)
      if (live === undefined) return undefined
      return isExtended ? { live, lifetime: live.session.expiresAt.getTime() - now.getTime() } : { live }
    },
  }
}

/** `tokenHash` as text, without a buffer in between. */
const keyOf = (token: string): string => hash('sha256', token, 'base64url')

/** Undefined for a session that is not to be extended now. */
function rolledEnd(config: Config, session: Session, now: Date): Date | undefined {
  const { expires_in, update_age } = config.session
  if (!session.remembered || now.getTime() - session.updatedAt.getTime() < update_age) return undefined
  const end = endWithinMaxAge(config, session.createdAt, new Date(now.getTime() + expires_in))
  return end > session.expiresAt ? end : undefined
}

/** Whether the admin of an impersonated session may still act as the user. */
const isAllowed = (kernel: Kernel, { session, user, impersonator }: LiveSession): boolean =>
  session.impersonatedBy === null ||
  (impersonator !== undefined && mayImpersonate(kernel, impersonator, user))

const IMPERSONATOR_COLUMNS = [
  'id',
  'role',
  'banned',
  'banExpires',
] as const satisfies readonly (keyof Impersonator)[]
const sessionWhere = (condition: string) =>
  preparedStatement<Record<string, unknown>>(
    `select ${selectList('s', SESSION_COLUMNS, 's.')}, ${selectList('u', USER_COLUMNS, 'u.')}, s.token_hash, m.role as organization_role,
     ${selectList('a', IMPERSONATOR_COLUMNS, 'a.')}, p.created_at as parent_begin, p.expires_at as parent_end,
     p.shown as parent_shown
   from service.session s join service."user" u on u.id = s.user_id
   left join service.member m on m.organization_id = s.active_organization_id and m.user_id = s.user_id
   left join service.session p on p.id = s.parent_session_id and p.user_id = s.impersonated_by
   left join service."user" a on a.id = p.user_id
   where ${condition}`,
  )
const SESSION_BY_TOKEN = sessionWhere('s.token_hash = $1')
const SESSION_BY_ID = sessionWhere('s.id = $1')

async function findSession(
  { pipelined, config }: Kernel,
  statement: typeof SESSION_BY_ID,
  key: Buffer | string,
): Promise<LiveSession | undefined> {
  const [row] = await pipelined.query(statement, [key])
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
    tokenHash: row.token_hash as Buffer,
    user: pick('u', USER_COLUMNS) as User,
    organizationRole: row.organization_role as string | null,
    impersonator:
      parent.expiresAt === null
        ? undefined
        : {
            ...(pick('a', IMPERSONATOR_COLUMNS) as Impersonator),
            hasSecondFactor:
              session.shown.includes(FACTOR_OF_ADMIN) && hasShownFactor(row.parent_shown as string[]),
          },
  }
}
