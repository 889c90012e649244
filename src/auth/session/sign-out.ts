import { act } from '#identity/act.ts'
import { deleteProvenSessions, type ProvenSession } from '#identity/proven-sessions.ts'
import { deleteSession } from '#identity/sessions.ts'
import { tell } from '#identity/tell.ts'
import { tokenHash } from '#identity/tokens.ts'
import { auditRecord } from '#kernel/audit/record-act.ts'
import { createGroupCommit } from '#kernel/group-commit.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { bySession, type Caller } from '../door/access.ts'

/** The kernel of the request: the audit trail shows where it came from. */
export type SignOut = (kernel: Kernel, caller: Caller) => Promise<void>

/**
 * Ends the caller's session; when this resolves, no process accepts its token. A commit that notifies blocks all others that notify
 * until it is on disk, so concurrent sign-outs share one commit. A session with open tickets, or with its row or its user locked by
 * another transaction, is ended in a transaction of its own, which may wait for locks.
 */
export function createSignOut(kernel: Kernel): SignOut {
  const end = createGroupCommit<ProvenSession, SignOutEnd>(MAX_BATCH, async (proven) => {
    const firsts = new Map(proven.toReversed().map((one) => [one.id, one]))
    const ended = await deleteProvenSessions(kernel, [...firsts.values()])
    const settled = kernel.coherence.settle()
    // Of several for one session the first one ends it.
    return proven.map((one) => ({ isEnded: ended.has(one.id) && firsts.get(one.id) === one, settled }))
  })
  return async (kernel, caller) => {
    const { id } = caller.session
    const signedOut = { targetId: caller.user.id, details: { sessionId: id } }
    const record = auditRecord(kernel, 'user.signed_out', signedOut)
    const { isEnded, settled } = await end({ id, tokenHash: tokenHash(caller.token), record })
    if (isEnded) return settled
    await act(kernel, bySession(caller), async (kernel) => {
      await deleteSession(kernel.db, id)
      await tell(kernel, 'user.signed_out', signedOut)
    })
  }
}

type SignOutEnd = {
  readonly isEnded: boolean
  /** Resolves when no process accepts any token of the batch. */
  readonly settled: Promise<void>
}

/** Sessions that one statement ends. */
const MAX_BATCH = 200
