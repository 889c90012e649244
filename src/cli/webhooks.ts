import { Command, Option } from 'commander'
import {
  countReplay,
  REPLAYABLE,
  type ReplaySelection,
  replayDeliveries,
} from '#gateway/webhooks/log/replay.ts'
import { listDeliveries } from '#gateway/webhooks/log/store.ts'
import { findEndpoint, listWebhooks } from '#gateway/webhooks/store.ts'
import type { Db } from '#kernel/db/connect.ts'
import { UUID } from '#kernel/random.ts'
import { count, instant } from './option-values.ts'
import { showProgress } from './progress.ts'
import { printList, terminal } from './terminal.ts'
import { withKernel, withReadOnlyKernel } from './with-kernel.ts'

export function webhooksCommand(): Command {
  const webhooks = new Command('webhooks').description(
    'list webhooks and their deliveries, and make deliveries again',
  )
  webhooks.addCommand(listCommand())
  webhooks.addCommand(deliveriesCommand())
  webhooks.addCommand(replayCommand())
  return webhooks
}

const listCommand = (): Command =>
  new Command('list')
    .description('list webhooks, oldest first')
    .option('--client <client>', 'only webhooks of this client')
    .option('--json', 'as JSON')
    .action(({ client, json }: { client?: string; json?: boolean }, command: Command) =>
      withReadOnlyKernel(command, async ({ db }) => {
        const found = await listWebhooks(db, { clientName: client }, { limit: 10_000, offset: 0 })
        const rows = found.map((webhook) => ({
          id: webhook.id,
          event: webhook.routeKeys.join(', '),
          client: webhook.clientName,
          table: webhook.tableName,
          url: webhook.url,
          active: webhook.isActive,
          failures: webhook.consecutiveFailures,
          reason: webhook.disabledReason,
        }))
        printList(rows, Object.keys(rows[0] ?? {}), json === true)
      }),
    )

type List = { status?: string; limit: number; json?: boolean | undefined }

const STATUSES = ['pending', 'retrying', ...REPLAYABLE]

function deliveriesCommand(): Command {
  return new Command('deliveries')
    .description('list deliveries, newest first')
    .argument('[webhook]', 'id of a webhook; default: all')
    .addOption(new Option('--status <status>', 'only deliveries in this state').choices(STATUSES))
    .addOption(new Option('--limit <count>', 'maximum number of deliveries').default(50).argParser(count))
    .option('--json', 'as JSON')
    .action((webhookId: string | undefined, { status, limit, json }: List, command: Command) =>
      withReadOnlyKernel(command, async ({ db }) => {
        if (webhookId !== undefined) await expectWebhook(db, webhookId)
        const found = await listDeliveries(db, { webhookId, status }, { limit, offset: 0 })
        const rows = found.map((delivery) => ({
          id: delivery.id,
          webhook: delivery.webhookId,
          event: delivery.routeKey,
          status: delivery.status,
          attempt: delivery.attempt,
          response: delivery.responseStatus,
          error: delivery.error,
          next: delivery.nextAttemptAt,
          created: delivery.createdAt,
        }))
        printList(json === true ? rows : rows.map(withReason), COLUMNS, json === true)
        if (json !== true && rows.length === limit)
          terminal.warn(`only the newest ${limit} deliveries are shown; use --limit to show more`)
      }),
    )
}

const COLUMNS = ['id', 'webhook', 'event', 'status', 'attempt', 'response', 'next', 'created']

/** An attempt without a response has a reason, which the table shows in its place. */
const withReason = <T extends { readonly response: number | null; readonly error: string | null }>(
  row: T,
) => ({
  ...row,
  response: row.response ?? row.error,
})

type Replay = { status: ReplaySelection['status']; since: Date; json?: boolean | undefined }

function replayCommand(): Command {
  return new Command('replay')
    .description('deliver again, with all attempts; a running service begins within seconds')
    .argument('<webhook>', 'id of a webhook')
    .addOption(
      new Option('--status <status>', 'deliveries in this state').choices(REPLAYABLE).default('failed'),
    )
    .addOption(
      new Option('--since <time>', 'deliveries made since this time, like 2026-05-01T10:00:00Z')
        .default(new Date(0), 'all that are kept, 30 days')
        .argParser(instant),
    )
    .option('--json', 'the number as JSON')
    .action((webhookId: string, { status, since, json }: Replay, command: Command) =>
      withKernel(command, async (kernel) => {
        const { isActive } = await expectWebhook(kernel.db, webhookId)
        if (!isActive)
          throw new Error(
            `The webhook ${webhookId} is inactive: activate it first, by PATCH /admin/webhooks/${webhookId} with {"is_active": true}.`,
          )
        const selection = { webhookId, status, since }
        const progress = await showProgress(await countReplay(kernel.db, selection))
        const made = await replayDeliveries(kernel, selection, progress.advance).finally(progress.end)
        terminal.say(json === true ? JSON.stringify({ replayed: made }) : dueAgain(made))
      }),
    )
}

const dueAgain = (made: number): string =>
  made === 1 ? '1 delivery is due again' : `${made} deliveries are due again`

async function expectWebhook(db: Db, id: string): Promise<{ readonly isActive: boolean }> {
  const found = UUID.test(id) ? await findEndpoint(db, id) : undefined
  if (found === undefined) throw new Error(`There is no webhook ${id}. See gatehouse webhooks list.`)
  return found
}
