import { type RawBuilder, sql } from 'kysely'
import type { User } from '#identity/users.ts'
import type { Db } from '#kernel/db/connect.ts'
import { type CountMode, countRows, type Total } from '#kernel/db/total.ts'

export type Order = { readonly by: readonly RawBuilder<unknown>[]; readonly direction: 'asc' | 'desc' }

type Page = {
  readonly limit: number
  readonly offset: number
  /** All that fit are read and then sorted. */
  readonly isOfFew: boolean
}

/** One page. Most orders have an index that ends with the id (0020_user_listing.sql). */
export async function selectUsers(
  db: Db,
  where: readonly RawBuilder<boolean>[],
  { by, direction }: Order,
  { limit, offset, isOfFew }: Page,
): Promise<User[]> {
  const order = [...by, sql`id`].map((key) => (direction === 'asc' ? sql`${key} asc` : sql`${key} desc`))
  // The planner does not move the order into a subquery with an offset.
  const users = isOfFew ? sql`(${fitting(where)} offset 0)` : sql`(${fitting(where)})`
  const { rows } = await sql<User>`
    select * from ${users} as fitting order by ${sql.join(order)} limit ${limit} offset ${offset}`.execute(db)
  return rows
}

export const countUsers = (
  db: Db,
  where: readonly RawBuilder<boolean>[],
  mode: CountMode | undefined,
): Promise<Total> => countRows(db, sql`(${fitting(where)})`, mode)

const fitting = (where: readonly RawBuilder<boolean>[]) =>
  sql`select * from service."user" ${where.length === 0 ? sql`` : sql`where ${sql.join(where, sql` and `)}`}`
