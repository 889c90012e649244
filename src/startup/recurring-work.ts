import { pruneAnonymousUsers } from '#auth/anonymous/prune.ts'
import { deleteExpiredDevices } from '#auth/device/store.ts'
import { deleteOldInvitations } from '#auth/organization/invitation-store.ts'
import { resealTotpSecrets } from '#auth/two-factor/reseal.ts'
import { deleteOldFailures } from '#auth/two-factor/store.ts'
import { deleteExpiredRealtimeTickets } from '#gateway/realtime/store.ts'
import { hastenLateDeliveries, pruneDeliveries } from '#gateway/webhooks/log/retention.ts'
import { resealWebhooks } from '#gateway/webhooks/reseal.ts'
import { maintainJwtKeys, resealJwtKeys } from '#identity/jwt/keys.ts'
import { deleteExpiredKnownDevices } from '#identity/known-devices.ts'
import { resealProviderTokens } from '#identity/reseal-tokens.ts'
import { deleteExpiredSessions } from '#identity/sessions.ts'
import { deleteExpiredTickets } from '#identity/tickets.ts'
import { deleteExpiredTrustedDevices } from '#identity/trusted-devices.ts'
import { deleteOldCodeCounts } from '#identity/wrong-mail-codes.ts'
import { pruneAuditEvents } from '#kernel/audit/prune.ts'
import { deleteEndedLeases } from '#kernel/db/coherence.ts'
import { deleteExpiredLimits } from '#kernel/http/limits/limits.ts'
import type { RecurringTask } from '#kernel/jobs.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { pruneOutbox } from '#kernel/mail/transports.ts'
import { bindSealed } from './bind-sealed.ts'

/** All recurring work. One process at a time does it. Hourly tasks run at minutes that the five-minute ones leave free. */
export function recurringTable(kernel: Kernel): readonly RecurringTask[] {
  const { db, now } = kernel
  return [
    {
      name: 'prune-sessions',
      cron: '*/5 * * * *',
      run: () => inBatches(() => deleteExpiredSessions(db, now(), BATCH)),
    },
    {
      name: 'prune-tickets',
      cron: '*/5 * * * *',
      run: () => inBatches(() => deleteExpiredTickets(db, now(), BATCH)),
    },
    {
      name: 'prune-realtime-tickets',
      cron: '*/5 * * * *',
      run: () => inBatches(() => deleteExpiredRealtimeTickets(db, now(), BATCH)),
    },
    {
      // An hour later, so that a device that comes late is told that its code has expired.
      name: 'prune-devices',
      cron: '*/5 * * * *',
      run: () => inBatches(() => deleteExpiredDevices(db, new Date(now().getTime() - HOUR), BATCH)),
    },
    {
      name: 'prune-trusted-devices',
      cron: '*/5 * * * *',
      run: () => inBatches(() => deleteExpiredTrustedDevices(db, now(), BATCH)),
    },
    {
      name: 'prune-known-devices',
      cron: '*/5 * * * *',
      run: () => inBatches(() => deleteExpiredKnownDevices(db, now(), BATCH)),
    },
    {
      name: 'prune-wrong-codes',
      cron: '23 * * * *',
      run: () => inBatches(() => deleteOldFailures(db, now(), BATCH)),
    },
    {
      name: 'prune-wrong-mail-codes',
      cron: '26 * * * *',
      run: () => inBatches(() => deleteOldCodeCounts(db, now(), BATCH)),
    },
    {
      name: 'prune-invitations',
      cron: '29 * * * *',
      run: () => inBatches(() => deleteOldInvitations(db, now(), BATCH)),
    },
    {
      name: 'prune-anonymous-users',
      cron: '41 * * * *',
      run: () => pruneAnonymousUsers(kernel),
    },
    {
      name: 'prune-limits',
      cron: '*/5 * * * *',
      run: () => inBatches(() => deleteExpiredLimits(db, now(), BATCH)),
    },
    {
      name: 'prune-leases',
      cron: '*/5 * * * *',
      run: () => deleteEndedLeases(db),
    },
    {
      name: 'bind-sealed',
      cron: '37 * * * *',
      run: () => bindSealed(kernel),
    },
    {
      name: 'reseal-provider-tokens',
      cron: '37 * * * *',
      run: () => resealProviderTokens(kernel),
    },
    {
      name: 'rotate-jwt-keys',
      cron: '19 * * * *',
      run: () => maintainJwtKeys(kernel),
    },
    {
      name: 'reseal-jwt-keys',
      cron: '37 * * * *',
      run: () => resealJwtKeys(kernel),
    },
    {
      name: 'reseal-totp-secrets',
      cron: '37 * * * *',
      run: () => resealTotpSecrets(kernel),
    },
    {
      name: 'reseal-webhooks',
      cron: '37 * * * *',
      run: () => resealWebhooks(kernel),
    },
    {
      name: 'prune-audit',
      cron: '37 * * * *',
      run: () => inBatches(() => pruneAuditEvents(kernel, BATCH)),
    },
    {
      name: 'prune-deliveries',
      cron: '47 * * * *',
      run: async () => {
        // A clock that was set back leaves deliveries that are due too late.
        await hastenLateDeliveries(kernel, BATCH)
        await inBatches(() => pruneDeliveries(kernel, BATCH))
      },
    },
    {
      name: 'prune-outbox',
      cron: '17 * * * *',
      run: () => pruneOutbox(kernel.config, now()),
    },
  ]
}

const HOUR = 3_600_000

/** Rows pruned by one statement, so that no statement holds many locks. */
const BATCH = 1_000

async function inBatches(prune: () => Promise<number>): Promise<void> {
  while ((await prune()) === BATCH);
}
