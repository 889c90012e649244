import type { Client } from '#databases/clients/clients.ts'
import { Failure } from '#kernel/errors.ts'
import { fail } from './errors.ts'

export type FrozenClient = Pick<Client, 'isFrozen' | 'isRestoring'>

/** Frozen by the operator, or by a restore, which no operator can thaw. */
export const clientFrozen = ({ isRestoring }: Omit<FrozenClient, 'isFrozen'>, cause?: unknown): Failure =>
  isRestoring
    ? fail('client_frozen', {
        cause,
        message: 'A restore replaces the data of this client, which rejects writes until that has ended',
        hint: 'Try again later; GET /admin/backups/jobs?job_type=restore shows the progress',
      })
    : fail('client_frozen', { cause, hint: 'Unfreeze it with PUT /admin/clients/{name}/freeze' })

/**
 * Whether SQL or a function writes is only known when the database rejects it as read-only. On a frozen client, the error is then
 * `client_frozen`.
 */
export const explainReadOnly =
  (client: FrozenClient) =>
  (error: unknown): never => {
    if (!client.isFrozen || !(error instanceof Failure) || error.code !== 'read_only') throw error
    throw clientFrozen(client, error)
  }

/** The same for a read of an admin who acts as a user: a view or a policy may turn out to write. */
export function explainImpersonated(error: unknown): never {
  if (!(error instanceof Failure) || error.code !== 'read_only') throw error
  throw fail('not_while_impersonating', { cause: error })
}
