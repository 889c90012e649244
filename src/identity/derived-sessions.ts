import { type RawBuilder, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { INHERITED } from './inherited-sessions.ts'
import { SESSION_COLUMNS, type Session } from './sessions.ts'

/** Its end, too, is that of its origin. */
const TAKEN = ['userId', 'expiresAt', ...INHERITED] as const satisfies readonly (keyof Session)[]

/** The session that another one is derived from, and the hash of the token that it had then. */
export type Origin = { readonly id: string; readonly tokenHash: Buffer }

type DerivedSession = Pick<Session, 'id' | 'updatedAt' | 'ipAddress' | 'userAgent'> & {
  readonly tokenHash: Buffer
  /** The organization that is active in it. */
  readonly organization: RawBuilder<string | null>
}

/** Begins a session that ends with its origin. Undefined when the origin has ended, or has another token by now. */
export const insertDerivedSession = (
  db: Db,
  origin: Origin,
  { id, updatedAt, ipAddress, userAgent, tokenHash, organization }: DerivedSession,
): Promise<Session | undefined> =>
  db
    .insertInto('session')
    .columns([
      ...TAKEN,
      ...(['originSessionId', 'id', 'updatedAt', 'ipAddress', 'userAgent'] as const),
      ...(['tokenHash', 'activeOrganizationId'] as const),
    ])
    .expression((of) =>
      of
        .selectFrom('session as o')
        .where('o.id', '=', origin.id)
        .where('o.tokenHash', '=', origin.tokenHash)
        .select(TAKEN)
        .select([
          'o.id as originSessionId',
          sql<string>`${id}::uuid`.as('id'),
          sql<Date>`${updatedAt}::timestamptz`.as('updatedAt'),
          sql<string | null>`${ipAddress}::text`.as('ipAddress'),
          sql<string | null>`${userAgent}::text`.as('userAgent'),
          sql<Buffer>`${tokenHash}::bytea`.as('tokenHash'),
          organization.as('activeOrganizationId'),
        ]),
    )
    .returning(SESSION_COLUMNS)
    .executeTakeFirst()

/** SQL for a table of the ids of the session, its origin, the origin of that, and so on. */
export const lineOf = (id: string): RawBuilder<unknown> => sql`(
  with recursive line as (
    select id, origin_session_id from service.session where id = ${id}
    union select o.id, o.origin_session_id from service.session o join line on o.id = line.origin_session_id)
  select id from line)`

/** The number of sessions that end at the latest when the first of them ends, this one included. */
export async function countLine(db: Db, id: string): Promise<number> {
  const { rows } = await sql<{
    readonly n: number
  }>`select count(*)::integer as n from ${lineOf(id)} as line`.execute(db)
  return rows[0]?.n ?? 0
}
