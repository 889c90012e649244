import { sql } from 'kysely'
import { recordAct } from '#kernel/audit/record-act.ts'
import type { Db } from '#kernel/db/connect.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'

/** States of deliveries that have no attempt before them. */
export const REPLAYABLE = ['failed', 'succeeded', 'expired'] as const

export type ReplaySelection = {
  readonly webhookId: string
  readonly status: (typeof REPLAYABLE)[number]
  /** Deliveries that were made since. */
  readonly since: Date
}

/** Deliveries in one transaction. */
const STEP = 1_000

/** The number of deliveries that a replay makes due. */
export async function countReplay(db: Db, { webhookId, status, since }: ReplaySelection): Promise<number> {
  const { total } = await db
    .selectFrom('webhookDelivery')
    .select(({ fn }) => fn.countAll<string>().as('total'))
    .where('webhookId', '=', webhookId)
    .where('status', '=', status)
    .where('id', '>=', firstIdAt(since))
    .executeTakeFirstOrThrow()
  return Number(total)
}

/** Makes deliveries due again, oldest first, with all their attempts. Reports the number of each step. */
export async function replayDeliveries(
  kernel: Kernel,
  selection: ReplaySelection,
  report: (count: number) => void,
): Promise<number> {
  let [total, after] = [0, firstIdAt(selection.since)]
  for (;;) {
    const ids = await findStep(kernel.db, selection, after)
    const last = ids.at(-1)
    if (last === undefined) return total
    after = last
    const restarted = await atomically(kernel, async (kernel) => {
      const count = await restartStep(kernel.db, selection, ids, kernel.now())
      if (count > 0) {
        const act = { targetId: selection.webhookId, count, details: { status: selection.status } }
        await recordAct(kernel, 'webhook.deliveries_replayed', act)
      }
      return count
    })
    total += restarted
    report(ids.length)
  }
}

/** The smallest UUIDv7 of this time; `id` is in the order of creation. */
const firstIdAt = (time: Date): string => {
  const hex = time.getTime().toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

async function findStep(
  db: Db,
  { webhookId, status }: ReplaySelection,
  after: string,
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('webhookDelivery')
    .select('id')
    .where('webhookId', '=', webhookId)
    .where('status', '=', status)
    .where('id', '>', after)
    .orderBy('id')
    .limit(STEP)
    .execute()
  return rows.map(({ id }) => id)
}

/** Without those that a worker has, or whose status has changed meanwhile. */
async function restartStep(
  db: Db,
  { status }: ReplaySelection,
  ids: readonly string[],
  now: Date,
): Promise<number> {
  const { numAffectedRows } = await sql`
    update service.webhook_delivery set status = 'retrying', attempt = 0, next_attempt_at = ${now}, claimed_until = null
    where id = any (${ids}::uuid[]) and status = ${status} and (claimed_until is null or claimed_until <= ${now})`.execute(
    db,
  )
  return Number(numAffectedRows)
}
