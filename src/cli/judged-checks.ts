import { type Check, createChecks } from '#gateway/health/checks.ts'
import { createDatabaseClock } from '#kernel/clock.ts'
import { expectTime } from '#kernel/clock-drift.ts'
import type { Config } from '#kernel/config/config.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { watchDisk } from '#kernel/disk.ts'

type Judged = { readonly check: Check; readonly problems: readonly string[] }

/** The checks of the service that are wanted, each asked once. */
export const judge = (
  config: Config,
  controlUrl: string,
  wanted: (check: Check) => boolean = () => true,
): Promise<readonly Judged[]> =>
  onConnection({ url: controlUrl, name: 'checks', deadline: PATIENCE }, async (client) => {
    const clock = createDatabaseClock()
    await expectTime(client, clock)
    const run = (text: string) => client.query(text)
    const checks = createChecks({ config, run, disk: watchDisk(config), drift: clock.drift })
    const judged: Judged[] = []
    // In turn, since one connection runs one statement at a time.
    for (const check of checks.filter(wanted)) judged.push({ check, problems: await check.problems() })
    return judged
  })

/** Milliseconds. */
const PATIENCE = 30_000

/** Throws the problems that stop the start. */
export async function expectService(config: Config, controlUrl: string): Promise<void> {
  const judged = await judge(config, controlUrl, ({ stops }) => stops === 'start')
  const problems = judged.flatMap(({ problems }) => problems)
  if (problems.length > 0) throw new Error(problems.join('\n'))
}

/** Problems that do not stop the start. */
export async function serviceAdvice(config: Config, controlUrl: string): Promise<readonly string[]> {
  const judged = await judge(config, controlUrl, ({ stops }) => stops !== 'start')
  return judged.flatMap(({ problems }) => problems)
}
