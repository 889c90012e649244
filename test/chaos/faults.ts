import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'
import type { Page } from './page.ts'
import type { PlannedFault } from './plan.ts'
import type { RunningService } from './services.ts'
import type { World } from './world.ts'

type Inject = (world: World, pages: readonly Page[], whom: number) => Promise<void>

const one = <T>(list: readonly T[], whom: number): T => list[whom % list.length] as T // never empty

const replace = ({ services }: World, whom: number, signal: Parameters<RunningService['replace']>[0]) =>
  one(services, whom).replace(signal)

async function crash({ server }: World): Promise<void> {
  await server.stop('immediate')
  await server.start()
}

/** Each resolves when the fault is over; what it has broken may take longer. */
export const INJECT: Readonly<Record<PlannedFault['name'], Inject>> = {
  cut: async (_world, pages) => {
    for (const page of pages) page.cut()
  },
  'cut one': async (_world, pages, whom) => one(pages, whom).cut(),
  hold: async (_world, pages, whom) => one(pages, whom).hold(),
  'reset the database’s connections': async ({ services }, _pages, whom) => one(services, whom).proxy.reset(),
  async freeze({ services }, _pages, whom) {
    const { proxy } = one(services, whom)
    proxy.freeze()
    await sleep(200)
    await proxy.mend()
  },
  terminate: ({ server }, _pages, whom) =>
    withClient(server.superuserUrl, async (client) => {
      await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname in ('app', 'control') and pid % 3 = $1`,
        [whom % 3],
      )
    }),
  'kill a worker': ({ services }, _pages, whom) => services[1].killWorker(whom),
  'kill a service': (world, _pages, whom) => replace(world, whom, 'SIGKILL'),
  'stop a service': (world, _pages, whom) => replace(world, whom, 'SIGTERM'),
  'crash the database': crash,
  async 'kill everything'(world, _pages, whom) {
    const crashed = crash(world)
    // It needs the database to start.
    await Promise.all([crashed, crashed.then(() => replace(world, whom, 'SIGKILL'))])
  },
}
