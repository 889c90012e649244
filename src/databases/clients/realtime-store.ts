import type { Kernel } from '#kernel/kernel.ts'

/** Before a table becomes live: a row too many costs one look. */
export async function rememberClient(
  { db, now }: Pick<Kernel, 'db' | 'now'>,
  clientName: string,
): Promise<void> {
  await db
    .insertInto('realtimeClient')
    .values({ clientName, askedAt: now() })
    .onConflict((conflict) => conflict.column('clientName').doUpdateSet({ askedAt: now() }))
    .execute()
}

export const listClients = async ({ db }: Pick<Kernel, 'db'>): Promise<readonly string[]> =>
  (await db.selectFrom('realtimeClient').select('clientName').execute()).map(({ clientName }) => clientName)

/** Unless a table may be about to become live. */
export async function forgetClient(
  { db }: Pick<Kernel, 'db'>,
  clientName: string,
  askedBefore: Date,
): Promise<void> {
  await db
    .deleteFrom('realtimeClient')
    .where('clientName', '=', clientName)
    .where('askedAt', '<', askedBefore)
    .execute()
}
