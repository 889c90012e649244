import { createGroupCommit } from '#kernel/group-commit.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { upsertUses } from './store.ts'

/** Milliseconds. A key in use costs each process one statement in this time, and nothing in between. */
const PRECISION = 60_000

/** Keys that are remembered as noted. Beyond it all are forgotten, and noted again at their next use. */
const MAX_REMEMBERED = 10_000

/** Notes that a key was used. The request does not wait for it, and a failure leaves the time of before. */
export function createKeyUses({ db, now, log }: Kernel): (id: string) => void {
  const noted = new Map<string, number>()
  const write = createGroupCommit<readonly [id: string, at: number], void>(1_000, async (uses) => {
    await upsertUses(db, new Map(uses))
    return uses.map(() => undefined)
  })
  return (id) => {
    const at = now().getTime()
    const before = noted.get(id)
    // The clock may have been set back.
    if (before !== undefined && Math.abs(at - before) < PRECISION) return
    if (noted.size >= MAX_REMEMBERED) noted.clear()
    noted.set(id, at)
    write([id, at]).catch((error: unknown) =>
      log.debug({ event: 'key_use_not_noted', error }, 'the last use of an API key was not noted'),
    )
  }
}
