import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Purpose } from '#kernel/secrets.ts'
import type { Webhook } from './store.ts'

const SEALED = {
  sealedSecret: 'webhook-secret',
  sealedPreviousSecret: 'webhook-secret',
  sealedHeaders: 'webhook-headers',
} as const satisfies Readonly<Record<string, Purpose>>
const COLUMNS = Object.keys(SEALED) as (keyof typeof SEALED)[] // keys of a literal

type SealedRow = Pick<Webhook, 'id' | keyof typeof SEALED>

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

const BATCH = 500

async function* sealedRows(db: Db): AsyncGenerator<SealedRow> {
  let after = '00000000-0000-0000-0000-000000000000'
  for (;;) {
    const rows = await db
      .selectFrom('webhook')
      .select(['id', ...COLUMNS])
      .where('id', '>', after)
      .where('deletedAt', 'is', null)
      .orderBy('id')
      .limit(BATCH)
      .execute()
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < BATCH) return
    after = last.id
  }
}
