import type { Db } from '#kernel/db/connect.ts'
import { rowsById } from '#kernel/db/rows-by-id.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Purpose } from '#kernel/secrets.ts'

const SEALED = {
  sealedSecret: 'webhook-secret',
  sealedPreviousSecret: 'webhook-secret',
  sealedHeaders: 'webhook-headers',
} as const satisfies Readonly<Record<string, Purpose>>
const COLUMNS = Object.keys(SEALED) as (keyof typeof SEALED)[] // keys of a literal

/**
 * Wipes secrets whose last day is over. After a rotation of SERVICE_SECRET: seals secrets and headers with the current one, so that the
 * previous one can be removed.
 */
export async function resealWebhooks({ db, secrets, now }: Kernel): Promise<void> {
  await db
    .updateTable('webhook')
    .set({ sealedPreviousSecret: null, previousSecretUntil: null })
    .where('previousSecretUntil', '<', now())
    .execute()
  if (!secrets.isRotating) return
  for await (const webhook of sealedRows(db)) {
    for (const column of COLUMNS) {
      const { id, [column]: sealed } = webhook
      if (sealed === null || secrets.isCurrent(sealed)) continue
      const opened = secrets.open(SEALED[column], sealed, id)
      if (opened === undefined) continue
      const again = secrets.seal(SEALED[column], opened, id)
      await db
        .updateTable('webhook')
        .set({ [column]: again })
        .where('id', '=', id)
        .where(column, '=', sealed)
        .execute()
    }
  }
}

const sealedRows = (db: Db) =>
  rowsById((after, most) =>
    db
      .selectFrom('webhook')
      .select(['id', ...COLUMNS])
      .where('id', '>', after)
      .where('deletedAt', 'is', null)
      .orderBy('id')
      .limit(most)
      .execute(),
  )
