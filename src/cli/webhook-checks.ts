import { listFailingWebhooks } from '#gateway/webhooks/store.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Finding } from './finding.ts'

/** Endpoints whose attempts fail, or that were set inactive by the service. */
export async function webhookFindings(db: Db): Promise<Finding[]> {
  const failing = await listFailingWebhooks(db)
  return failing.map(({ id, isActive, disabledReason, consecutiveFailures, failingSince }) => ({
    subject: `webhook ${id}`,
    ok: false,
    says:
      isActive || disabledReason === null
        ? `${attempts(consecutiveFailures)} failed since ${failingSince?.toISOString()}: gatehouse webhooks deliveries ${id}`
        : `is inactive (${disabledReason}): PATCH /admin/webhooks/${id} with is_active true when it is mended`,
  }))
}

const attempts = (count: number): string => (count === 1 ? '1 attempt has' : `${count} attempts have`)
