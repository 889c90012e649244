import { deleteProvenSessions, deleteSession, type ProvenSession } from '#identity/sessions.ts'
import { tokenHash } from '#identity/tokens.ts'
import { createGroupCommit } from '#kernel/group-commit.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { actAsCaller, type Caller } from '../access.ts'

export type SignOut = (caller: Caller) => Promise<void>

/**
 * Ends the caller's session; when this answers, no process accepts its token. A commit that notifies keeps all others that
 * notify waiting until it is on disk, so those that ask at once share one. A session with open tickets, or whose row or user
 * another transaction has locked, takes the ordinary way: that alone waits for rows.
 */
export function createSignOut(kernel: Kernel): SignOut {
  const end = createGroupCommit<ProvenSession, Ended>(MOST, async (proven) => {
    const ended = await deleteProvenSessions(kernel, proven)
    const settled = kernel.coherence.settle()
    return proven.map(({ id }) => ({ isEnded: ended.has(id), settled }))
  })
  return async (caller) => {
    const { id } = caller.session
    const { isEnded, settled } = await end({ id, tokenHash: tokenHash(caller.token) })
    if (isEnded) return settled
    await actAsCaller(kernel, caller, ({ db }) => deleteSession(db, id))
    await kernel.coherence.settle()
  }
}

type Ended = {
  readonly isEnded: boolean
  /** When no process believes any of them; one wait for them all. */
  readonly settled: Promise<void>
}

/** Sessions that one statement ends. */
const MOST = 200
