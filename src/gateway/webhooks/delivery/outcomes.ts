import { actAsOperator } from '#identity/act.ts'
import { tell, untold } from '#identity/tell.ts'
import { createGroupCommit } from '#kernel/group-commit.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { clearFailures, countFailure, deactivateWebhook } from '../store.ts'
import type { AttemptResult } from './attempt.ts'
import { delayAfter } from './retry-schedule.ts'
import { type ClaimedDelivery, type Outcome, writeOutcomes } from './store.ts'

/** The answer of an endpoint that wants no more (RFC 9110 section 15.5.11; Standard Webhooks specification, "Responses"). */
const GONE = 410

/** An endpoint is set inactive when all attempts have failed for so long, milliseconds, and on so many days. */
const MAX_FAILING_TIME = 5 * 86_400_000
const MIN_FAILING_DAYS = 5

/** Writes the end of an attempt at this address and returns it. */
type RecordOutcome = (claim: ClaimedDelivery, result: AttemptResult, url: string) => Promise<Outcome>

/** Outcomes that arrive while a statement runs, and in a pause after it, share the next one. No endpoint waits for its outcome. */
const MAX_PER_STATEMENT = 200
/** Milliseconds. With 5 a statement has more outcomes, and a delivery costs as much. */
const PAUSE = 2

export function createOutcomes(kernel: Kernel): RecordOutcome {
  const write = createGroupCommit<Outcome, { readonly isFailing: boolean } | undefined>(
    MAX_PER_STATEMENT,
    async (outcomes) => {
      const written = await writeOutcomes(kernel.db, outcomes)
      return outcomes.map(({ id }) => written.get(id))
    },
    undefined,
    PAUSE,
  )
  return async (claim, result, url) => {
    const outcome = outcomeOf(kernel, claim, result)
    // Of this process, which may have been paused: another one has the delivery now, and its attempt counts.
    const written = await write(outcome)
    if (written === undefined) return outcome
    kernel.metrics.count(COUNTERS[outcome.status])
    await noteHealth(kernel, { ...written, id: claim.webhookId, url }, result)
    return outcome
  }
}

const COUNTERS = {
  succeeded: 'gatehouse_webhook_deliveries_succeeded_total',
  retrying: 'gatehouse_webhook_attempts_failed_total',
  failed: 'gatehouse_webhook_deliveries_failed_total',
} as const

function outcomeOf(
  { now, random }: Pick<Kernel, 'now' | 'random'>,
  { id, claimedUntil, attempt: before }: ClaimedDelivery,
  { isSuccess, waitAsked, ...result }: AttemptResult,
): Outcome {
  const attempt = before + 1
  const isOver = isSuccess || result.responseStatus === GONE
  const delay = isOver ? undefined : delayAfter(attempt, random, waitAsked)
  const ended = isSuccess ? 'succeeded' : 'failed'
  return {
    ...result,
    id,
    claimedUntil,
    attempt,
    status: delay === undefined ? ended : 'retrying',
    nextAttemptAt: delay === undefined ? null : new Date(now().getTime() + delay),
  }
}

/** An attempt at a former address says nothing about the one that the webhook has by now. */
async function noteHealth(
  kernel: Kernel,
  { id, url, isFailing }: { readonly id: string; readonly url: string; readonly isFailing: boolean },
  { isSuccess, responseStatus }: AttemptResult,
): Promise<void> {
  if (isSuccess) {
    // Most webhooks have none to clear, and cost no statement.
    if (isFailing) await clearFailures(kernel.db, id, url)
    return
  }
  const at = kernel.now()
  const failing = await countFailure(kernel.db, id, { url, now: at })
  if (failing === undefined) return
  const { failingSince, failingDays } = failing
  if (responseStatus === GONE)
    await deactivate(kernel, id, { url, reason: 'The endpoint answered 410 Gone.' })
  else if (at.getTime() - failingSince.getTime() >= MAX_FAILING_TIME && failingDays >= MIN_FAILING_DAYS)
    await deactivate(kernel, id, {
      url,
      reason: `Every attempt has failed since ${failingSince.toISOString()}.`,
      failingSince,
    })
}

type Deactivation = { readonly url: string; readonly reason: string; readonly failingSince?: Date }

/** Without effect when the webhook is inactive, or when an attempt has succeeded meanwhile. */
async function deactivate(kernel: Kernel, id: string, deactivation: Deactivation): Promise<void> {
  const { reason } = deactivation
  await actAsOperator(kernel, async (kernel) => {
    if (!(await deactivateWebhook(kernel.db, id, { ...deactivation, now: kernel.now() })))
      return untold(kernel, 'the webhook is inactive, or has worked meanwhile')
    await tell(kernel, 'webhook.deactivated', { targetId: id, details: { reason } })
    kernel.afterCommit(() =>
      kernel.log.warn({ event: 'webhook_deactivated', webhook_id: id, reason }, 'a webhook was set inactive'),
    )
  })
}
