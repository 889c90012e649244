import type { Kernel } from '#kernel/kernel.ts'
import { MAX_RETRY_AFTER } from '../delivery/retry-schedule.ts'
import {
  countWaiting,
  deleteDeliveriesOfRemoved,
  deleteOldDeliveries,
  deleteOldEvents,
  deleteRemovedWebhooks,
  hastenDeliveries,
} from './retention-store.ts'

const DAY = 86_400_000

/** Events and deliveries are kept for 30 days (gateway.md 12), milliseconds. */
const KEPT = 30 * DAY

/** Deletes old deliveries and events, and what is left of removed webhooks, at most `batch` of each; returns the largest number. */
export async function pruneDeliveries(
  { db, now }: Pick<Kernel, 'db' | 'now'>,
  batch: number,
): Promise<number> {
  const before = new Date(now().getTime() - KEPT)
  const deliveries = await deleteOldDeliveries(db, before, batch)
  const events = await deleteOldEvents(db, before, batch)
  const ofRemoved = await deleteDeliveriesOfRemoved(db, batch)
  // An event that was being written when the webhook was removed may still refer to it.
  await deleteRemovedWebhooks(db, new Date(now().getTime() - DAY))
  return Math.max(deliveries, events, ofRemoved)
}

/** Milliseconds: more than the clocks of two processes differ. */
const MARGIN = 60_000

/** A delivery that waits longer than an endpoint can ask for was written before the clock of the database was set back. It is due now. */
export const hastenLateDeliveries = ({ db, now }: Pick<Kernel, 'db' | 'now'>, batch: number): Promise<void> =>
  hastenDeliveries(db, { latest: new Date(now().getTime() + MAX_RETRY_AFTER + MARGIN), now: now() }, batch)

/** The gauge counts no further, since it is read with each scrape. */
const MAX_WAITING = 100_000

export function measureDeliveries({ metrics, db }: Pick<Kernel, 'metrics' | 'db'>): void {
  metrics.gauge(
    'gatehouse_webhook_deliveries_waiting',
    'Deliveries of webhooks that wait for an attempt, counted up to 100,000',
    [],
    async () => [{ labels: {}, value: await countWaiting(db, MAX_WAITING) }],
  )
}
