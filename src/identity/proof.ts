import { type RawBuilder, sql } from 'kysely'
import type { Kernel } from '#kernel/kernel.ts'
import { type Impersonator, mayImpersonate } from './impersonation.ts'
import type { ProviderAccount } from './linked-accounts.ts'
import { endWithinMaxAge } from './sessions.ts'
import { tokenHash } from './tokens.ts'
import { isBanned, noteUserLock, type User } from './users.ts'

/** The authorization of a verb, and the state that it relies on when it acts. */
export type Proof = {
  readonly userId: string
  readonly session?: {
    readonly id: string
    /** A session whose token was replaced does not count. Absent: a redeemed ticket names the session. */
    readonly token?: string
    /** The same, by the hash of the token that the session had when a ticket was asked for. */
    readonly tokenHash?: Buffer
    /** Of an impersonated session. It counts while this admin may act as the user, and the admin's own session is alive. */
    readonly impersonatedBy?: string | null
  }
  /** The stored hash that the password was checked against. */
  readonly password?: string | undefined
  /** The id of the user's passkey that has signed. */
  readonly passkey?: string
  /** An account at a provider, which is linked to the user. */
  readonly account?: ProviderAccount
}

export type SessionProof = Proof & Required<Pick<Proof, 'session'>>

/**
 * States the proof again: the first statement of the transaction that acts. Locks the user's row and every row that the proof names.
 * Returns the user as of now; undefined when the proof does not hold.
 *
 * It is one statement because READ COMMITTED evaluates a row again, in its newest version, after waiting for its lock. That holds for
 * locked rows only, so the statement joins and locks them all; a subquery would see the snapshot from before the wait.
 *
 * Every transaction locks the user's row first: one order of locks excludes deadlocks. The lock is the weakest one that excludes
 * itself, so that inserting a foreign key to the user does not wait for it.
 *
 * A ban ends a session. Without a session the caller decides about it, since `admit` answers BANNED_USER.
 */
export async function lockProvenUser(kernel: Kernel, proof: Proof): Promise<User | undefined> {
  if (!kernel.db.isTransaction) throw new Error('a proof is stated again in the transaction that acts')
  const impersonatedBy = proof.session?.impersonatedBy
  if (impersonatedBy) await lockUsers(kernel, [proof.userId, impersonatedBy])
  noteUserLock(kernel.notes, proof.userId)
  return findProven(kernel, proof, { locks: true })
}

/** Locks the rows of several users in the order of their ids, which excludes deadlocks. Returns those that exist, by id. */
export async function lockUsers(
  { db, notes }: Kernel,
  ids: readonly string[],
): Promise<ReadonlyMap<string, User>> {
  for (const id of ids) noteUserLock(notes, id)
  const { rows } = await sql<User>`
    select * from service."user" where id = any (${ids}::uuid[]) order by id for no key update`.execute(db)
  return new Map(rows.map((user) => [user.id, user]))
}

/** Does the proof hold now? For answers only: a verb that changes anything needs the lock of `lockProvenUser`. */
export const proofHolds = async (kernel: Kernel, proof: Proof): Promise<boolean> =>
  (await findProven(kernel, proof, { locks: false })) !== undefined

async function findProven(
  kernel: Kernel,
  { userId, session, password, passkey, account }: Proof,
  { locks }: { readonly locks: boolean },
): Promise<User | undefined> {
  const { db, now, config } = kernel
  const hash = session?.token === undefined ? session?.tokenHash : tokenHash(session.token)
  const parts = [
    session && {
      join: sql`join service.session s on s.id = ${session.id} and s.user_id = u.id ${hash === undefined ? NOTHING : sql`and s.token_hash = ${hash}`}`,
      lock: sql`for key share of s`,
    },
    password !== undefined && {
      join: sql`join service.account a on a.user_id = u.id and a.provider_id = 'credential' and a.password = ${password} and not a.must_change_password`,
      lock: sql`for share of a`,
    },
    passkey !== undefined && {
      join: sql`join service.passkey p on p.id = ${passkey} and p.user_id = u.id`,
      lock: sql`for key share of p`,
    },
    account && {
      join: sql`join service.account l on l.user_id = u.id and l.provider_id = ${account.providerId} and l.account_id = ${account.accountId}`,
      lock: sql`for key share of l`,
    },
  ].filter((part) => typeof part === 'object')
  const together = (fragments: readonly RawBuilder<unknown>[]) =>
    fragments.length === 0 ? NOTHING : sql.join(fragments, sql` `)
  const locked = together([sql`for no key update of u`, ...parts.map(({ lock }) => lock)])
  const { rows } = await sql<User & SessionTimes>`
    select u.* ${session ? sql`, s.created_at as session_begin, s.expires_at as session_end` : NOTHING}
    from service."user" u ${together(parts.map(({ join }) => join))}
    where u.id = ${userId} ${locks ? locked : NOTHING}`.execute(db)
  const [found] = rows
  if (found === undefined) return undefined
  const { sessionBegin, sessionEnd, ...user } = found
  if (sessionBegin === undefined || sessionEnd === undefined) return user
  // By the clock after the wait.
  const time = now()
  if (endWithinMaxAge(config, sessionBegin, sessionEnd) <= time || isBanned(user, time)) return undefined
  const isImpersonated = session?.impersonatedBy != null
  return !isImpersonated || (await impersonationHolds(kernel, session.id, user, { locks })) ? user : undefined
}

/** With the rows of both users locked, if anything is to be changed. */
async function impersonationHolds(
  kernel: Kernel,
  sessionId: string,
  user: User,
  { locks }: { readonly locks: boolean },
): Promise<boolean> {
  const { rows } = await sql<Impersonator & Required<SessionTimes>>`
    select a.id, a.role, a.banned, a.ban_expires, p.created_at as session_begin, p.expires_at as session_end
    from service.session s join service.session p on p.id = s.parent_session_id and p.user_id = s.impersonated_by
      join service."user" a on a.id = p.user_id
    where s.id = ${sessionId} ${locks ? sql`for key share of p` : NOTHING}`.execute(kernel.db)
  const [admin] = rows
  return (
    admin !== undefined &&
    endWithinMaxAge(kernel.config, admin.sessionBegin, admin.sessionEnd) > kernel.now() &&
    mayImpersonate(kernel, admin, user)
  )
}

type SessionTimes = { readonly sessionBegin?: Date; readonly sessionEnd?: Date }

const NOTHING = sql``
