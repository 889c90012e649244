import type { Driver } from '#databases/drivers/driver.ts'
import { CHANGES_KEPT } from '#kernel/config/sections/database.ts'
import type { RecurringTask } from '#kernel/jobs.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Clients } from './clients.ts'
import { forgetClient, listClients } from './realtime-store.ts'

/** Sentences for the operator about tables of a client that are not live for every writer. */
export async function changeProblems({
  driver,
}: {
  readonly driver: Pick<Driver, 'changes'>
}): Promise<readonly { readonly says: string; readonly ok: boolean }[]> {
  const problems = (await driver.changes?.problems()) ?? []
  return problems.map(({ table: { schema, table }, why, isBroken }) => ({
    says: `${schema}.${table} ${why}`,
    ok: !isBroken,
  }))
}

/** Deletes old changes of live rows in the databases of clients. */
export const pruneChanges = (kernel: Kernel, clients: Pick<Clients, 'find'>): RecurringTask => ({
  name: 'prune-changes',
  cron: '*/15 * * * *',
  async run() {
    for (const name of await listClients(kernel))
      await pruneClient(kernel, clients, name).catch((error: unknown) => {
        kernel.log.warn(
          { event: 'prune_changes_failed', client: name, error },
          'old changes were not deleted',
        )
      })
  },
})

const DAY = 86_400_000

async function pruneClient(kernel: Kernel, clients: Pick<Clients, 'find'>, name: string): Promise<void> {
  const feed = (await clients.find(name))?.driver.changes
  const keep = kernel.config.clients[name]?.realtime.keep ?? CHANGES_KEPT
  if ((await feed?.prune(keep)) !== true)
    await forgetClient(kernel, name, new Date(kernel.now().getTime() - DAY))
}
