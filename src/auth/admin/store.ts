import { type RawBuilder, sql } from 'kysely'
import type { User } from '#identity/users.ts'
import type { Db } from '#kernel/db/connect.ts'

type Order = { readonly by: RawBuilder<unknown>; readonly direction: 'asc' | 'desc' }

/** One page. Each order has an index that ends with the id (0020_user_listing.sql). */
export async function selectUsers(
  db: Db,
  where: readonly RawBuilder<boolean>[],
  { by, direction }: Order,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<User[]> {
  const order = direction === 'asc' ? sql`asc` : sql`desc`
  const { rows } = await sql<User>`
    select * from service."user" ${whereAll(where)} order by ${by} ${order}, id ${order}
    limit ${limit} offset ${offset}`.execute(db)
  return rows
}

/** Exact, so it reads every row that fits. */
export async function countUsers(db: Db, where: readonly RawBuilder<boolean>[]): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    select count(*) from service."user" ${whereAll(where)}`.execute(db)
  return Number(rows[0]?.count ?? 0)
}

const whereAll = (where: readonly RawBuilder<boolean>[]) =>
  where.length === 0 ? sql`` : sql`where ${sql.join(where, sql` and `)}`
