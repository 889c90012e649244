import { actAsOperator } from '#identity/act.ts'
import { tell, untold } from '#identity/tell.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { countDeliveries, listAfter, restartDeliveries } from './store.ts'

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

/** `last`: of the deliveries that were looked at, for the next step; undefined after the last ones. */
export type ReplayStep = {
  readonly replayed: number
  readonly seen: number
  readonly last: string | undefined
}

type Seen = readonly { readonly id: string; readonly createdAt: Date }[]

/** Makes the next deliveries due again, oldest first, with all their attempts. `expect` throws when that is not allowed. */
export async function replayStep(
  kernel: Kernel,
  selection: ReplaySelection,
  after: string | undefined,
  expect: (kernel: Kernel, deliveries: Seen) => Promise<void> = async () => {},
): Promise<ReplayStep> {
  const { webhookId, status, since } = selection
  return actAsOperator(kernel, async (kernel) => {
    const found = await listAfter(kernel.db, selection, after ?? firstIdAt(since), STEP)
    await expect(kernel, found)
    const ids = found.map(({ id }) => id)
    const replayed = await restartDeliveries(kernel.db, selection, ids, kernel.now())
    await (replayed > 0
      ? tell(kernel, 'webhook.deliveries_replayed', {
          targetId: webhookId,
          count: replayed,
          details: { status },
        })
      : untold(kernel, 'nothing to replay, or another replay was faster'))
    return { replayed, seen: ids.length, last: ids.length < STEP ? undefined : ids.at(-1) }
  })
}

/** Makes all of them due again. Reports the number of each step. */
export async function replayDeliveries(
  kernel: Kernel,
  selection: ReplaySelection,
  report: (count: number) => void,
): Promise<number> {
  let [total, after]: [number, string | undefined] = [0, undefined]
  do {
    const { replayed, seen, last } = await replayStep(kernel, selection, after)
    after = last
    total += replayed
    report(seen)
  } while (after !== undefined)
  return total
}

/** The smallest UUIDv7 of this time; `id` is in the order of creation. */
const firstIdAt = (time: Date): string => {
  const hex = time.getTime().toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}
