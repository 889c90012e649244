import type { Db } from '#kernel/db/connect.ts'
import { rowsById } from '#kernel/db/rows-by-id.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Secrets } from '#kernel/secrets.ts'
import {
  dropEndedSecrets,
  listSealedWebhooks,
  updateFormerSecrets,
  updateSealed,
  updateWebhook,
} from './store.ts'

const SEALED = {
  sealedSecret: 'webhook-secret',
  sealedHeaders: 'webhook-headers',
} as const
type Purpose = (typeof SEALED)[keyof typeof SEALED]
const COLUMNS = Object.keys(SEALED) as (keyof typeof SEALED)[] // keys of a literal

/**
 * Wipes secrets whose last day is over. After a rotation of SERVICE_SECRET: seals secrets and headers with the current one, so that the
 * previous one can be removed.
 */
export async function resealWebhooks({ db, secrets, now }: Kernel): Promise<void> {
  await dropEndedSecrets(db, now())
  if (!secrets.isRotating) return
  for await (const webhook of sealedRows(db)) {
    for (const column of COLUMNS) {
      const { id, [column]: sealed } = webhook
      if (sealed === null || secrets.isCurrent(sealed)) continue
      await updateSealed(db, id, column, { from: sealed, to: resealed(secrets, SEALED[column], sealed, id) })
    }
    const { id, sealedFormerSecrets: from } = webhook
    if (from.every(secrets.isCurrent)) continue
    const to = from.map((sealed) => resealed(secrets, 'webhook-secret', sealed, id))
    await updateFormerSecrets(db, id, { from, to })
  }
}

/**
 * For a secret that is lost: sets webhooks inactive whose secret or headers cannot be opened, so that their deliveries wait for new ones.
 * Returns their ids.
 */
export async function deactivateUnreadable(
  db: Db,
  secrets: Secrets,
  { reason, now }: { readonly reason: string; readonly now: Date },
): Promise<readonly string[]> {
  const ids: string[] = []
  for await (const { id, sealedSecret, sealedHeaders } of sealedRows(db)) {
    const isReadable = (purpose: Purpose, sealed: string | null) =>
      sealed === null || secrets.open(purpose, sealed, id) !== undefined
    if (isReadable('webhook-secret', sealedSecret) && isReadable('webhook-headers', sealedHeaders)) continue
    await updateWebhook(db, id, { isActive: false, disabledReason: reason, updatedAt: now })
    ids.push(id)
  }
  return ids
}

/** As it is if it was sealed with a lost secret. */
function resealed(secrets: Secrets, purpose: Purpose, sealed: string, id: string): string {
  const opened = secrets.open(purpose, sealed, id)
  return opened === undefined ? sealed : secrets.seal(purpose, opened, id)
}

const sealedRows = (db: Db) => rowsById((after, max) => listSealedWebhooks(db, after, max))
