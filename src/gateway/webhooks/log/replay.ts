import { actAsOperator } from '#identity/act.ts'
import { tell, untold } from '#identity/tell.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { countDeliveries, listIdsAfter, restartDeliveries } from './store.ts'

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
  const { total } = await countDeliveries(db, { webhookId, status, from: firstIdAt(since) }, 'exact')
  return total
}

/** Makes deliveries due again, oldest first, with all their attempts. Reports the number of each step. */
export async function replayDeliveries(
  kernel: Kernel,
  selection: ReplaySelection,
  report: (count: number) => void,
): Promise<number> {
  let [total, after] = [0, firstIdAt(selection.since)]
  for (;;) {
    const ids = await listIdsAfter(kernel.db, selection, after, STEP)
    const last = ids.at(-1)
    if (last === undefined) return total
    after = last
    const restarted = await actAsOperator(kernel, async (kernel) => {
      const count = await restartDeliveries(kernel.db, selection, ids, kernel.now())
      const act = { targetId: selection.webhookId, count, details: { status: selection.status } }
      await (count > 0
        ? tell(kernel, 'webhook.deliveries_replayed', act)
        : untold(kernel, 'another replay was faster'))
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
