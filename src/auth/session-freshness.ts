import type { Session } from '#identity/sessions.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from './errors.ts'

/** Did the session begin at most `session.fresh_age` ago? A session begins with a proof, and rolling it is none. */
export const isFresh = ({ config, now }: Kernel, { createdAt }: Session): boolean =>
  now().getTime() - createdAt.getTime() <= config.session.fresh_age

export function expectFresh(kernel: Kernel, session: Session): void {
  if (!isFresh(kernel, session)) throw fail('SESSION_NOT_FRESH')
}
