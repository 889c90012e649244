import { actAsOperator } from '#identity/act.ts'
import { tellAll, untold } from '#identity/tell.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { deleteIdleAnonymousUsers } from './store.ts'

/** Users deleted by one transaction, which writes a row of the audit trail for each. */
const BATCH = 500

/** Before every id. */
const FIRST = '00000000-0000-0000-0000-000000000000'

/**
 * Deletes the anonymous users of this age who have no session: nobody can sign in as one of them. They belong to no organization and get no
 * mail, so there is nothing else to clear.
 */
export async function pruneAnonymousUsers(kernel: Kernel): Promise<void> {
  const { prune_after } = kernel.config.auth.anonymous
  let after: string | null = FIRST
  while (after !== null) after = await pruneBatch(kernel, after, prune_after)
}

const pruneBatch = (kernel: Kernel, after: string, age: number): Promise<string | null> =>
  actAsOperator(kernel, async (kernel) => {
    const now = kernel.now()
    const createdBefore = new Date(now.getTime() - age)
    const idle = { after, createdBefore, now, batch: BATCH }
    const { deleted, last } = await deleteIdleAnonymousUsers(kernel.db, idle)
    if (deleted.length === 0) untold(kernel, 'no user was deleted')
    else
      await tellAll(
        kernel,
        'user.deleted',
        deleted.map((targetId) => ({ targetId })),
      )
    return last
  })
