import type { Selectable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { TwoFactorTable } from '#kernel/db/tables.ts'

export type Factor = Selectable<TwoFactorTable>

/** The user's factor that is in force, or the one that waits for its first right code. */
export const findFactor = (db: Db, userId: string, inForce: boolean): Promise<Factor | undefined> =>
  db
    .selectFrom('twoFactor')
    .selectAll()
    .where('userId', '=', userId)
    .where('inForce', '=', inForce)
    .executeTakeFirst()
